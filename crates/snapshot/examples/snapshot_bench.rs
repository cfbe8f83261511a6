//! Snapshots beside what one would use otherwise, in one run: `cp -a` and `tar | zstd -1` with a
//! sync, restic and borg where they are installed. By hand:
//! `cargo run --release -p glovebox-snapshot --example snapshot_bench [ROUNDS] [MOST_FILES]`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_model::{ProjectId, SnapshotId};
use glovebox_snapshot::{DiffLimits, Restore, Side, Snapshots, Take, Taken, Writers};
use glovebox_workspace::Dir;

const CHANGED: usize = 20;

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// Lines that look like source: words from a small vocabulary, numbers, indentation.
fn text(seed: u64, length: usize) -> Vec<u8> {
    let words = [
        "let", "return", "value", "request", "fn", "match", "buffer", "index", "error", "result",
        "config", "stream", "client", "struct", "impl", "while", "state", "offset", "length",
    ];
    let random = noise(seed, length);
    let mut out = Vec::with_capacity(length + 16);
    for pair in random.chunks(2) {
        out.extend_from_slice(words[usize::from(pair[0]) % words.len()].as_bytes());
        match pair.get(1).copied().unwrap_or(0) % 7 {
            0 => out.extend_from_slice(b";\n    "),
            1 => out.extend_from_slice(format!("_{:x} ", pair[0]).as_bytes()),
            2 => out.extend_from_slice(b"("),
            _ => out.push(b' '),
        }
        if out.len() >= length {
            break;
        }
    }
    out.truncate(length);
    out
}

/// 60 files of a megabyte that do not compress, the rest text: 100 MB in 2,000 files.
fn plant(work: &Path) {
    for number in 0..60u64 {
        let dir = work.join(format!("data/{}", number % 6));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("{number}.bin")), noise(number, 1_000_000)).unwrap();
    }
    for number in 0..1940u64 {
        let dir = work.join(format!("src/module{}/part{}", number % 20, number % 7));
        fs::create_dir_all(&dir).unwrap();
        let length = 8_000 + usize::try_from(number * 7919 % 25_000).unwrap();
        fs::write(dir.join(format!("{number}.rs")), text(number, length)).unwrap();
    }
}

fn sources(work: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![work.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => waiting.push(path),
                false if path.extension().is_some_and(|it| it == "rs") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    found
}

/// Twenty files all over the tree: a line in some, all of others.
fn change(files: &[PathBuf], round: u64) {
    for number in 0..CHANGED {
        let at = (number * 97 + usize::try_from(round).unwrap() * 13) % files.len();
        let mut contents = fs::read(&files[at]).unwrap();
        match number % 4 {
            0 => contents = text(7_000_000 + round * 1000 + number as u64, contents.len()),
            _ => {
                let middle = contents.len() / 2;
                let line = format!("\nlet changed = {round};\n");
                contents.splice(middle..middle, line.into_bytes());
            }
        }
        fs::write(&files[at], contents).unwrap();
    }
}

fn dir(path: &Path) -> Dir {
    Dir::open_trusted(path).unwrap()
}

fn take(space: &Path, work: &Path, writers: Writers) -> Taken {
    let project: ProjectId = "bench".parse().unwrap();
    let snapshots = Snapshots::open(&dir(space)).unwrap();
    let mut watch = ();
    let take = Take {
        writers,
        ..Take::new(project, &mut watch)
    };
    snapshots.take(&dir(work), take).unwrap()
}

fn restore(space: &Path, id: &SnapshotId, work: &Path) {
    let snapshots = Snapshots::open(&dir(space)).unwrap();
    let restore = Restore { watch: &mut () };
    snapshots.restore(id, &dir(work), restore).unwrap();
}

/// A command line; false when the program is not there.
fn shell(line: &str) -> bool {
    let status = Command::new("sh")
        .args(["-c", line])
        .env("RESTIC_PASSWORD", "x")
        .env("BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK", "yes")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    status.success()
}

fn timed(what: impl FnOnce()) -> Duration {
    let begun = Instant::now();
    what();
    begun.elapsed()
}

#[derive(Default)]
struct Table {
    rows: Vec<(String, Vec<Duration>, Option<u64>)>,
}

impl Table {
    fn add(&mut self, name: &str, time: Duration, bytes: Option<u64>) {
        match self.rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => {
                row.1.push(time);
                row.2 = bytes.or(row.2);
            }
            None => self.rows.push((name.to_owned(), vec![time], bytes)),
        }
    }

    fn median(&self, name: &str) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.0 == name)?;
        let mut times: Vec<f64> = row.1.iter().map(|it| it.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        Some(times[times.len() / 2])
    }

    fn print(&self) {
        println!("| | median ms | min ms | stored kB |");
        println!("|---|---|---|---|");
        for (name, times, bytes) in &self.rows {
            let least = times.iter().min().unwrap().as_secs_f64() * 1e3;
            let bytes = bytes.map_or(String::new(), |it| format!("{}", it / 1000));
            println!(
                "| {name} | {:.1} | {least:.1} | {bytes} |",
                self.median(name).unwrap()
            );
        }
    }

    fn aim(&self, what: &str, ours: &str, theirs: &str, most: f64) {
        let (Some(ours), Some(theirs)) = (self.median(ours), self.median(theirs)) else {
            return;
        };
        let ratio = ours / theirs;
        let verdict = if ratio <= most { "met" } else { "MISSED" };
        println!("{what}: {ratio:.3} of it, aim {most:.3}: {verdict}");
    }
}

fn size(path: &Path) -> u64 {
    let out = Command::new("du").arg("-sb").arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn compare(room: &Path, rounds: u64) {
    let work = room.join("work");
    fs::create_dir(&work).unwrap();
    plant(&work);
    let files = sources(&work);
    let shown = work.display();
    let mut table = Table::default();
    let mut worst = 0u64;
    for round in 0..rounds {
        shell("sync");
        let at = room.join(format!("r{round}"));
        fs::create_dir_all(at.join("space")).unwrap();
        let space = at.join("space");
        let here = at.display();
        let run = |line: String| timed(|| assert!(shell(&line), "{line}"));

        table.add(
            "cp -a; sync",
            run(format!("cp -a {shown} {here}/cp; sync -f {here}")),
            None,
        );
        let line =
            format!("tar -C {shown} -cf - . | zstd -1 -q -T1 > {here}/t.zst; sync {here}/t.zst");
        table.add(
            "tar | zstd -1; sync",
            run(line),
            Some(size(&at.join("t.zst"))),
        );
        let line =
            format!("tar -C {shown} -cf - . | zstd -1 -q -T2 > {here}/t2.zst; sync {here}/t2.zst");
        table.add("tar | zstd -1 -T2; sync", run(line), None);
        let mut first = None;
        let time = timed(|| first = Some(take(&space, &work, Writers::Gone)));
        let first = first.unwrap();
        table.add("snapshot, first", time, Some(first.stored_bytes));
        // The same while programs may have files mapped, into a store of its own.
        let shared = at.join("shared");
        fs::create_dir(&shared).unwrap();
        let time = timed(|| drop(take(&shared, &work, Writers::Possible)));
        table.add("snapshot, first, in use", time, None);
        if shell("command -v restic") {
            let line =
                format!("restic -r {here}/restic init; restic -r {here}/restic backup {shown}");
            assert!(shell(&format!("restic -r {here}/restic init")), "{line}");
            let line = format!("restic -r {here}/restic backup {shown}");
            table.add("restic, first", run(line), Some(size(&at.join("restic"))));
        }
        if shell("command -v borg") {
            assert!(shell(&format!("borg init -e none {here}/borg")));
            let line = format!("borg create -C zstd,1 {here}/borg::a {shown}");
            table.add("borg, first", run(line), Some(size(&at.join("borg"))));
        }

        change(&files, round);
        // Whoever comes first also pays for what was just written, so they take turns.
        let in_use = |table: &mut Table| {
            let time = timed(|| drop(take(&shared, &work, Writers::Possible)));
            table.add("snapshot, 20 changed, in use", time, None);
        };
        if round % 2 == 0 {
            in_use(&mut table);
        }
        let mut second = None;
        let time = timed(|| second = Some(take(&space, &work, Writers::Gone)));
        let second = second.unwrap();
        worst = worst.max(second.stored_bytes);
        assert_eq!(second.files_read, CHANGED as u64);
        table.add("snapshot, 20 changed", time, Some(second.stored_bytes));
        if round % 2 == 1 {
            in_use(&mut table);
        }
        table.add(
            "cp -a; sync, 20 changed",
            run(format!("cp -a {shown} {here}/cp2; sync -f {here}")),
            None,
        );
        if at.join("restic").exists() {
            let before = size(&at.join("restic"));
            let time = run(format!("restic -r {here}/restic backup {shown}"));
            let grown = size(&at.join("restic")) - before;
            table.add("restic, 20 changed", time, Some(grown));
        }
        if at.join("borg").exists() {
            let before = size(&at.join("borg"));
            let time = run(format!("borg create -C zstd,1 {here}/borg::b {shown}"));
            let grown = size(&at.join("borg")).saturating_sub(before);
            table.add("borg, 20 changed", time, Some(grown));
        }
        let time = timed(|| {
            let snapshots = Snapshots::open(&dir(&space)).unwrap();
            let (before, after) = (&first.snapshot.id, &second.snapshot.id);
            let limits = DiffLimits::default();
            let sides = (Side::Snapshot(before), Side::Snapshot(after));
            let diff = snapshots.diff(sides.0, sides.1, limits, &mut ()).unwrap();
            assert_eq!(diff.changed, CHANGED as u64);
        });
        table.add("diff of the two", time, None);
        let line = format!("diff -r {here}/cp {here}/cp2; true");
        table.add("diff -r of two copies", run(line), None);
        let time = timed(|| restore(&space, &first.snapshot.id, &work));
        table.add("restore, 20 changed", time, None);
        fs::create_dir(at.join("fork")).unwrap();
        let time = timed(|| restore(&space, &first.snapshot.id, &at.join("fork")));
        table.add("restore, all (fork)", time, None);
        assert!(shell(&format!(
            "diff -r --no-dereference {here}/cp {here}/fork"
        )));
        let line = format!(
            "mkdir {here}/un; zstd -dcq {here}/t.zst | tar -C {here}/un -xf -; sync -f {here}"
        );
        table.add("zstd -d | tar; sync", run(line), None);
        // Nothing is deleted between rounds: a file system that has just deleted is slow to create.
    }
    table.print();
    let (tar, cp) = ("tar | zstd -1; sync", "cp -a; sync, 20 changed");
    for kind in ["", ", in use"] {
        let (first, changed) = (
            format!("snapshot, first{kind}"),
            format!("snapshot, 20 changed{kind}"),
        );
        table.aim(&format!("{first} against {tar}"), &first, tar, 1.0);
        table.aim(&format!("{changed} against {cp}"), &changed, cp, 0.125);
    }
    let verdict = if worst <= 1_000_000 { "met" } else { "MISSED" };
    println!("stored after 20 changed: at most {worst} bytes, aim 1,000,000: {verdict}");
}

fn grow(room: &Path, most: usize) {
    println!(
        "\n| files | first ms | nothing changed ms | 20 changed ms | stored kB | restore of 20 ms |"
    );
    println!("|---|---|---|---|---|---|");
    let mut count = 1000;
    while count <= most {
        let at = room.join(format!("g{count}"));
        let (work, space) = (at.join("work"), at.join("space"));
        fs::create_dir_all(&space).unwrap();
        for number in 0..count {
            let dir = work.join(format!("d{}", number / 100));
            if number % 100 == 0 {
                fs::create_dir_all(&dir).unwrap();
            }
            let contents = text(number as u64, 500 + number % 3000);
            fs::write(dir.join(format!("{number}.rs")), contents).unwrap();
        }
        shell("sync");
        let files = sources(&work);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut last = None;
        let first = timed(|| last = Some(take(&space, &work, Writers::Gone)));
        let none = timed(|| drop(take(&space, &work, Writers::Gone)));
        change(&files, 1);
        let mut second = None;
        let some = timed(|| second = Some(take(&space, &work, Writers::Gone)));
        let back = timed(|| restore(&space, &last.unwrap().snapshot.id, &work));
        println!(
            "| {count} | {:.0} | {:.0} | {:.0} | {} | {:.0} |",
            ms(first),
            ms(none),
            ms(some),
            second.unwrap().stored_bytes / 1000,
            ms(back)
        );
        fs::remove_dir_all(&at).unwrap();
        count *= 10;
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let rounds = args.next().map_or(5, |text| text.parse().unwrap());
    let most = args.next().map_or(100_000, |text| text.parse().unwrap());
    let room = tempfile::tempdir_in(".").unwrap();
    if rounds > 0 {
        compare(room.path(), rounds);
    }
    grow(room.path(), most);
}
