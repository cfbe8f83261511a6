//! Somebody changes the tree for as long as we work on it: directories become links and back, files
//! grow and vanish. Nothing outside is reached, and nothing hangs.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::ground::{Ground, look};

fn rounds(short: u32) -> impl Iterator<Item = u32> {
    let asked = std::env::var("GLOVEBOX_TEST_RACE_ATTEMPTS").ok();
    let asked: Option<u32> = asked.and_then(|text| text.parse().ok());
    let began = Instant::now();
    // Each syncs what it does, which takes long on a busy disk.
    let in_time = move || asked.is_some() || began.elapsed() < Duration::from_secs(60);
    (0..asked.unwrap_or(short)).take_while(move |round| *round < 10 || in_time())
}

#[test]
fn a_directory_that_turns_into_a_link_and_back_leads_nowhere() {
    let ground = Ground::new();
    for number in 0..20 {
        ground.write(format!("victim/{number}"), "inside");
    }
    let taken = ground.take();
    let outside = ground.space.join("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..20 {
        fs::write(outside.join(number.to_string()), "outside").unwrap();
    }
    let untouched = look(&outside);
    let over = AtomicBool::new(false);
    let (victim, aside) = (ground.path("victim"), ground.path("aside"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // Any step may fail: the restore moves things too.
                let _ = fs::rename(&victim, &aside);
                let _ = symlink(&outside, &victim);
                let _ = fs::remove_file(&victim);
                let _ = fs::rename(&aside, &victim);
            }
        });
        for _ in rounds(100) {
            // It may fail, since the ground moves; it may not reach outside.
            let _ = ground.restore_to(&taken.snapshot.id, &ground.work);
            if let Ok(raced) = ground.try_take(Default::default()) {
                let bytes = raced.snapshot.counts.bytes;
                assert_eq!(bytes % 6, 0, "bytes of outside: {bytes}");
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(look(&outside), untouched);
    ground.restore(&taken.snapshot.id);
    assert_eq!(fs::read(ground.path("victim/7")).unwrap(), b"inside");
}

#[test]
fn a_file_that_never_holds_still_is_told_and_is_not_taken_for_known() {
    let ground = Ground::new();
    ground.write("restless", vec![b'x'; 4 << 20]);
    ground.write("still", "1");
    let over = AtomicBool::new(false);
    let path = ground.path("restless");
    let taken = std::thread::scope(|scope| {
        scope.spawn(|| {
            use std::os::unix::fs::FileExt;
            let file = fs::File::options().write(true).open(&path).unwrap();
            let mut number = 0u64;
            while !over.load(Ordering::Relaxed) {
                let bytes = number.to_le_bytes();
                file.write_all_at(&bytes, number % (4 << 20)).unwrap();
                number += 4099;
            }
        });
        let mut taken = ground.take();
        // The other thread may not have started at the first.
        while taken.unstable.is_empty() {
            taken = ground.take();
        }
        over.store(true, Ordering::Relaxed);
        taken
    });
    assert_eq!(taken.snapshot.counts.unstable, 1);
    assert_eq!(taken.unstable[0].as_bytes(), b"restless");
    ground.settle();
    let before = look(&ground.work);
    let quiet = ground.take();
    assert!(quiet.files_read >= 1);
    assert_eq!(quiet.snapshot.counts.unstable, 0);
    ground.write("restless", "");
    ground.restore(&quiet.snapshot.id);
    assert_eq!(look(&ground.work), before);
}

#[test]
fn files_that_come_and_go_while_we_look_are_there_or_not() {
    let ground = Ground::new();
    ground.write("anchor", "1");
    fs::hard_link(ground.path("anchor"), ground.path("anchor2")).unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0u32;
            while !over.load(Ordering::Relaxed) {
                let name = ground.path(format!("coming{}", number % 50));
                match number % 3 {
                    0 => drop(fs::write(&name, "x")),
                    1 => drop(fs::hard_link(ground.path("anchor"), &name)),
                    _ => drop(fs::remove_file(&name)),
                }
                let _ = fs::remove_file(ground.path("anchor2"));
                let _ = fs::hard_link(ground.path("anchor"), ground.path("anchor2"));
                number = number.wrapping_add(1);
            }
        });
        for _ in rounds(100) {
            let taken = ground.take();
            assert!(taken.snapshot.counts.files >= 1);
        }
        over.store(true, Ordering::Relaxed);
    });
    let verified = ground.snapshots().verify(&mut ()).unwrap();
    assert!(verified.is_sound(), "{:?}", verified.damage);
}

#[test]
fn what_is_taken_while_all_is_verified_is_not_called_missing() {
    let ground = Ground::new();
    for number in 0..8 {
        ground.write(format!("{number}"), vec![number; 100_000]);
    }
    ground.take();
    let mut taken = 0;
    let mut takes = |_| {
        // Only now and then: each is on disk when it is taken.
        if taken < 4 {
            taken += 1;
            ground.write("new", format!("not there before {taken}"));
            ground.take();
        }
        std::ops::ControlFlow::Continue(())
    };
    let verified = ground.snapshots().verify(&mut takes).unwrap();
    assert_eq!(taken, 4);
    assert_eq!((verified.damage, verified.hurts), (vec![], vec![]));
    let after = ground.snapshots().verify(&mut ()).unwrap();
    assert_eq!((after.snapshots, after.is_sound()), (5, true));
}
