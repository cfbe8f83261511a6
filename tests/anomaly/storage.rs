//! State directories and workspaces that fail: unwritable, full, torn, gone.

use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_model::Status;

use crate::bench::Bench;

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
}

/// A file system of its own; gone with the value.
struct Disk {
    dir: tempfile::TempDir,
}

impl Disk {
    fn new(size: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        mount(
            &[
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=0700"),
                "disk",
            ],
            dir.path(),
        );
        Self { dir }
    }

    fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Takes all the space that is left.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.dir.path().join("filler")).unwrap();
        let block = vec![0; 64 << 10];
        while file.write_all(&block).is_ok() {}
        while file.write_all(&block[..1]).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.dir.path().join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path()).status();
    }
}

/// A file bound over itself so that nobody can write to it, until the value is dropped.
struct ReadOnly<'path>(&'path Path);

impl<'path> ReadOnly<'path> {
    fn new(file: &'path Path) -> Self {
        mount(&["--bind", file.to_str().unwrap()], file);
        mount(&["-o", "remount,bind,ro"], file);
        Self(file)
    }
}

impl Drop for ReadOnly<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0).status();
    }
}

fn mount(words: &[&str], target: &Path) {
    let mounted = Command::new("mount")
        .args(words)
        .arg(target)
        .status()
        .unwrap();
    assert!(mounted.success(), "this test mounts, so it runs as root");
}

const TOUCH: [&str; 3] = ["sh", "-c", ": > ran"];

#[test]
fn a_state_directory_that_cannot_be_made_starts_nothing() {
    let bench = Bench::with_state("/proc/glovebox-state".into());
    bench
        .run(&[], &TOUCH)
        .assert_code(125)
        .assert_error_with_hint("store_unavailable")
        .assert_says(&["/proc/glovebox-state"]);
    assert!(!bench.mark("ran").exists());

    std::fs::write(bench.path().join("file"), "").unwrap();
    let bench = Bench::with_state(bench.path().join("file"));
    bench
        .run(&[], &TOUCH)
        .assert_code(125)
        .assert_says(&["error[store_unavailable]"]);
    assert!(!bench.mark("ran").exists());
}

#[test]
fn a_state_directory_that_others_may_write_starts_nothing() {
    let bench = Bench::new();
    std::fs::create_dir(bench.state()).unwrap();
    mode(bench.state(), 0o777);
    bench
        .run(&[], &TOUCH)
        .assert_code(125)
        .assert_error_with_hint("store_unavailable")
        .assert_says(&["chmod 700"]);
    assert!(!bench.mark("ran").exists());
}

#[test]
fn a_read_only_state_directory_starts_nothing() {
    let disk = Disk::new("8M");
    let bench = Bench::with_state(disk.state());
    bench.run(&[], &["true"]).assert_code(0);
    mount(&["-o", "remount,ro"], disk.dir.path());
    let ended = bench.run(&[], &TOUCH);
    ended.assert_code(125).assert_says(&["error["]);
    assert!(!bench.mark("ran").exists());
    mount(&["-o", "remount,rw"], disk.dir.path());
    bench.run(&[], &TOUCH).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
}

/// Nothing may run that cannot be recorded.
#[test]
fn a_ledger_that_cannot_be_written_starts_nothing() {
    let bench = Bench::new();
    bench.run(&[], &["true"]).assert_code(0);
    let database = bench.state().join("glovebox.db");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE;")
        .unwrap();
    // Root writes through any mode, so the file is bound read-only over itself.
    let bound = ReadOnly::new(&database);
    let ended = bench.run(&[], &TOUCH);
    drop(bound);
    ended.assert_code(125).assert_says(&["error["]);
    assert!(!bench.mark("ran").exists(), "it ran unrecorded");
    bench.run(&[], &TOUCH).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
}

#[test]
fn a_full_disk_starts_nothing_and_all_is_well_when_space_returns() {
    let disk = Disk::new("8M");
    let bench = Bench::with_state(disk.state());
    bench.run(&[], &["true"]).assert_code(0);
    disk.fill();
    let ended = bench.run(&[], &TOUCH);
    ended.assert_code(125).assert_error_with_hint("disk_full");
    assert!(!bench.mark("ran").exists(), "it ran: {}", ended.stderr());
    disk.free();
    bench.run(&[], &TOUCH).assert_code(0);
    assert!(bench.mark("ran").exists());
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
    assert!(bench.execs().iter().all(|exec| exec.status.is_final()));
}

#[test]
fn a_disk_that_is_full_from_the_first_start_on_leaves_a_usable_state_directory() {
    let disk = Disk::new("8M");
    let bench = Bench::with_state(disk.state());
    disk.fill();
    let ended = bench.run(&[], &TOUCH);
    ended.assert_code(125).assert_says(&["error["]);
    assert!(!bench.mark("ran").exists());
    disk.free();
    bench.run(&[], &TOUCH).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
}

/// The end of a run cannot be written: the run is not acknowledged, and its row does not stay open.
#[test]
fn a_disk_that_fills_while_a_program_runs_leaves_no_row_open() {
    let disk = Disk::new("8M");
    let bench = Bench::with_state(disk.state());
    let running = bench.start(
        &[],
        ": > running; until [ -e go ]; do :; done; yes | head -c 1000000",
    );
    disk.fill();
    std::fs::write(bench.mark("go"), "").unwrap();
    let ended = running.wait();
    disk.free();
    let code = ended.code();
    assert!(
        matches!(code, Some(125 | 0)),
        "{code:?}: {}",
        ended.stderr()
    );
    bench.run(&[], &["true"]).assert_code(0);
    bench.assert_nothing_left();
    bench.assert_sound(&[]);
    let open: Vec<Status> = bench
        .execs()
        .iter()
        .map(|exec| exec.status)
        .filter(|status| !status.is_final())
        .collect();
    assert!(
        open.is_empty(),
        "rows that nobody will ever close: {open:?}"
    );
}

fn overwrite(file: &Path, offset: u64, bytes: &[u8]) {
    let mut file = std::fs::File::options().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(offset)).unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn a_torn_database_starts_nothing_and_is_not_replaced() {
    for (offset, length) in [(0, 100), (4096, 60_000)] {
        let bench = Bench::new();
        bench.run(&[], &["true"]).assert_code(0);
        let database = bench.state().join("glovebox.db");
        rusqlite::Connection::open(&database)
            .unwrap()
            .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        overwrite(&database, offset, &vec![0xa5; length]);
        let torn = std::fs::read(&database).unwrap();
        let ended = bench.run(&[], &TOUCH);
        ended.assert_code(125).assert_says(&["error["]);
        assert!(!ended.stderr().contains("panicked"), "{}", ended.stderr());
        assert!(!bench.mark("ran").exists());
        let now = std::fs::read(&database).unwrap();
        assert_eq!(now.len(), torn.len(), "it was replaced");
        bench.assert_nothing_left();
    }
}

#[test]
fn a_missing_ledger_key_starts_nothing() {
    let bench = Bench::new();
    bench.run(&[], &["true"]).assert_code(0);
    std::fs::remove_file(bench.state().join("ledger.key")).unwrap();
    let ended = bench.run(&[], &TOUCH);
    assert_ne!(ended.code(), Some(0));
    ended.assert_says(&["error[ledger_tampered]", "ledger.key"]);
    assert!(!bench.mark("ran").exists());
    bench.assert_nothing_left();
}

#[test]
fn the_whole_machine_and_a_home_are_no_workspaces() {
    let bench = Bench::new();
    let home = std::env::var("HOME").unwrap();
    for place in ["/", home.as_str()] {
        let mut command = bench.command(&[], &["true"]);
        let ended = crate::bench::Ended::of(command.current_dir(place));
        ended
            .assert_code(2)
            .assert_error_with_hint("workspace_refused");
    }
    // By another name too.
    let link = bench.path().join("link");
    std::os::unix::fs::symlink(&home, &link).unwrap();
    let mut command = bench.command(&[], &["true"]);
    let ended = crate::bench::Ended::of(command.current_dir(link));
    ended
        .assert_code(2)
        .assert_error_with_hint("workspace_refused");
}

#[test]
fn a_workspace_that_is_deleted_while_it_is_used_ends_in_a_record() {
    let bench = Bench::new();
    let script = ": > running; until [ -e /tmp/stop ]; do [ -e /workspace/work/alive ] || : > /tmp/stop; done";
    std::fs::write(bench.mark("alive"), "").unwrap();
    let running = bench.start(&[], script);
    std::fs::remove_dir_all(bench.work()).unwrap();
    running.wait().assert_code(0);
    bench.assert_nothing_left();
    assert_eq!(bench.execs()[0].status, Status::Succeeded);
}

#[test]
fn a_current_directory_that_is_gone_starts_nothing() {
    let bench = Bench::new();
    let gone = bench.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let script = format!(
        "rmdir '{}' && exec '{}' --state-dir '{}' run -- true",
        gone.display(),
        crate::bench::binary().display(),
        bench.state().display()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(&gone);
    crate::bench::Ended::of(&mut command)
        .assert_code(2)
        .assert_error_with_hint("workspace_refused");
}

#[test]
fn a_state_directory_inside_the_workspace_is_not_shown_to_the_program() {
    let bench = Bench::new();
    let inside = Bench::with_state(bench.work().join("state"));
    let mut command = inside.command(&[], &["sh", "-c", "cat state/ledger.key; ls state"]);
    let ended = crate::bench::Ended::of(command.current_dir(bench.work()));
    assert_ne!(ended.code(), Some(0), "{}", ended.stdout());
    assert!(
        !ended.stdout().contains("glovebox.db"),
        "{}",
        ended.stdout()
    );
}
