//! What is unchanged is not read again, and what changed always is.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

use crate::ground::{Ground, look, noise, set_modified};

fn many(ground: &Ground) {
    for number in 0..300u64 {
        let text = format!("file {number}\n").repeat(200);
        ground.write(format!("d{}/f{number}", number % 10), text);
    }
    for number in 0..4 {
        ground.write(format!("big{number}"), noise(number, 1_000_000));
    }
}

#[test]
fn a_second_snapshot_reads_and_stores_only_what_changed() {
    let ground = Ground::new();
    many(&ground);
    ground.settle();
    let first = ground.take();
    assert_eq!(first.files_read, 304);
    let nothing = ground.take();
    assert_eq!(nothing.files_read, 0);
    assert_eq!(nothing.new_chunks, 0, "{nothing:?}");
    assert_eq!(nothing.snapshot.manifest, first.snapshot.manifest);
    for number in 0..5 {
        ground.write(format!("d{number}/f{number}"), format!("new {number}"));
    }
    // Five bytes in the middle of a megabyte.
    let mut big = noise(0, 1_000_000);
    big.splice(500_000..500_000, *b"hello");
    ground.write("big0", &big);
    let second = ground.take();
    assert_eq!(second.files_read, 6);
    assert_eq!(second.snapshot.parent, Some(nothing.snapshot.id));
    assert!(second.stored_bytes < 600_000, "{second:?}");
    assert!(second.stored_bytes > 16_000, "{second:?}");
}

#[test]
fn a_file_that_was_changed_and_dated_back_is_read() {
    let ground = Ground::new();
    ground.write("a", "one");
    let metadata = fs::metadata(ground.path("a")).unwrap();
    ground.settle();
    ground.take();
    // In place, the same length, the old time.
    let mut file = fs::File::options()
        .write(true)
        .open(ground.path("a"))
        .unwrap();
    file.write_all(b"two").unwrap();
    set_modified(&ground.path("a"), metadata.mtime(), metadata.mtime_nsec());
    let before = look(&ground.work);
    let taken = ground.take();
    assert_eq!(taken.files_read, 1);
    ground.write("a", "three");
    ground.restore(&taken.snapshot.id);
    assert_eq!(look(&ground.work), before);
}

#[test]
fn a_file_as_young_as_the_last_snapshot_is_read_again() {
    // On a busy disk it may have grown old before anybody looks.
    for _ in 0..10 {
        let ground = Ground::new();
        ground.write("old", "1");
        ground.settle();
        ground.write("young", "1");
        let first = ground.take();
        assert_eq!(first.files_read, 2);
        // Its stamp could be shared by a change right after the look.
        let second = ground.take();
        if second.files_read == 0 {
            continue;
        }
        assert_eq!(second.files_read, 1);
        ground.settle();
        assert!(ground.take().files_read <= 1);
        assert_eq!(ground.take().files_read, 0);
        return;
    }
    panic!("it was never read again");
}

#[test]
fn a_page_that_stays_mapped_does_not_hide_a_change() {
    // Python maps the page, dirties it, and changes it again when told: no new time without a
    // write-back in between.
    let ground = Ground::new();
    ground.write("mapped", vec![b'.'; 4096]);
    let script = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
page = mmap.mmap(file.fileno(), 4096)
page[0] = 65
print('one', flush=True)
sys.stdin.readline()
page[1] = 66
print('two', flush=True)
sys.stdin.readline()
";
    let mut child = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(ground.path("mapped"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut order = child.stdin.take().unwrap();
    let mut answers = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut answers, &mut line).unwrap();
    ground.settle();
    ground.take();
    order.write_all(b"\n").unwrap();
    std::io::BufRead::read_line(&mut answers, &mut line).unwrap();
    let second = ground.take();
    drop(order);
    assert!(child.wait().unwrap().success());
    assert_eq!(line, "one\ntwo\n");
    let fork = ground.space.join("fork");
    fs::create_dir(&fork).unwrap();
    ground.restore_to(&second.snapshot.id, &fork).unwrap();
    assert_eq!(&fs::read(fork.join("mapped")).unwrap()[..3], b"AB.");
}

#[test]
fn on_a_file_system_whose_stamps_say_nothing_everything_is_read() {
    let room = tempfile::tempdir_in("/dev/shm").unwrap();
    let ground = Ground::at(room.path());
    ground.write("a", "1");
    ground.settle();
    ground.take();
    assert_eq!(ground.take().files_read, 1);
}

#[test]
fn a_lost_chunk_is_stored_again_by_the_next_snapshot() {
    let ground = Ground::new();
    ground.write("a", noise(1, 100_000));
    ground.settle();
    ground.take();
    for pack in ground.files_in("packs") {
        fs::remove_file(pack).unwrap();
    }
    let before = look(&ground.work);
    let taken = ground.take();
    assert_eq!(taken.files_read, 1);
    ground.write("a", "gone");
    ground.restore(&taken.snapshot.id);
    assert_eq!(look(&ground.work), before);
}
