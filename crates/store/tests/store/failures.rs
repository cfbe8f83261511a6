//! What happens when the state cannot be used: a clear error, and nothing half-written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::{ended, fixture, run_one, running};
use glovebox_model::{Code, Error, SpaceId, Status};
use glovebox_store::{Expectations, Owner, StateDir, Store};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn assert_clear(error: &Error, code: Code) {
    assert_eq!(error.code, code, "{error}");
    assert!(!error.message.ends_with('.'), "{error}");
    assert!(
        !error.hints.is_empty() || !error.causes.is_empty(),
        "{error:?} says neither why nor what to do"
    );
}

#[test]
fn everything_in_the_state_directory_is_private() {
    let it = fixture();
    let owner = Owner::claim(&it.state).unwrap();
    run_one(&it.store);
    assert_eq!(mode(it.state.path()), 0o700);
    for name in ["owners", "projects"] {
        assert_eq!(mode(&it.state.path().join(name)), 0o700, "{name}");
    }
    for name in [
        "glovebox.db",
        "glovebox.db-wal",
        "glovebox.db-shm",
        "ledger.key",
    ] {
        assert_eq!(mode(&it.state.path().join(name)), 0o600, "{name}");
    }
    assert_eq!(mode(&it.state.owners().join(owner.id())), 0o600);
}

#[test]
fn two_state_directories_have_two_tags_and_one_has_one() {
    let (one, other) = (fixture(), fixture());
    assert_ne!(one.state.tag(), other.state.tag());
    let link = one.dir.path().join("link");
    symlink(one.state.path(), &link).unwrap();
    assert_eq!(StateDir::open(&link).unwrap().tag(), one.state.tag());
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    assert!(one.state.tag().chars().all(plain), "{}", one.state.tag());
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for bits in [0o720, 0o702, 0o777, 0o1777] {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(bits)).unwrap();
        let error = StateDir::open(dir.path()).unwrap_err();
        assert_clear(&error, Code::StoreUnavailable);
        assert!(error.hints[0].contains("chmod 700"), "{error:?}");
    }
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing was put there"
    );
}

#[test]
fn a_directory_of_somebody_else_is_refused() {
    // Root makes one; everybody else finds one.
    let dir = tempfile::tempdir().unwrap();
    let path = if std::os::unix::fs::chown(dir.path(), Some(12345), None).is_ok() {
        dir.path()
    } else {
        Path::new("/usr")
    };
    let error = StateDir::open(path).unwrap_err();
    assert_clear(&error, Code::StoreUnavailable);
    assert!(error.message.contains("belongs to user"), "{error}");
}

#[test]
fn a_path_that_cannot_be_a_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [
        file.clone(),
        file.join("below"),
        Path::new("/proc/nothing").to_owned(),
    ] {
        assert_clear(&StateDir::open(&path).unwrap_err(), Code::StoreUnavailable);
    }
    assert!(StateDir::open("").is_err());
}

#[test]
fn a_damaged_database_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    fs::write(
        state.database(),
        "this is not a database, by any measure".repeat(100),
    )
    .unwrap();
    let error = Store::open(&state).unwrap_err();
    assert_clear(&error, Code::StoreUnavailable);
    assert!(error.message.contains("damaged"), "{error}");
    let content = fs::read_to_string(state.database()).unwrap();
    assert!(content.starts_with("this is not"), "it was left as it was");
}

#[test]
fn a_database_whose_pages_are_overwritten_gives_an_error_and_no_panic() {
    let it = fixture();
    for _ in 0..20 {
        run_one(&it.store);
    }
    it.database()
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))
        .unwrap();
    let path = it.state.database();
    let length = fs::metadata(&path).unwrap().len();
    drop(it.store);
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes.len() as u64, length);
    bytes[4096..].fill(0xa5);
    fs::write(&path, bytes).unwrap();
    let opened = Store::open(&it.state);
    let failed = opened.and_then(|store| store.plan("o", &running()).map(drop));
    assert_clear(&failed.unwrap_err(), Code::StoreUnavailable);
}

#[test]
fn another_programs_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateDir::open(dir.path()).unwrap();
    let foreign = rusqlite::Connection::open(state.database()).unwrap();
    foreign.execute_batch("CREATE TABLE theirs (a)").unwrap();
    let error = Store::open(&state).unwrap_err();
    assert_clear(&error, Code::StoreUnavailable);
    let tables: i64 = foreign
        .query_row("SELECT count(*) FROM sqlite_schema", (), |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1);
}

#[test]
fn a_newer_database_is_refused() {
    let it = fixture();
    it.database()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = Store::open(&it.state).unwrap_err();
    assert_clear(&error, Code::StoreUnavailable);
    assert!(error.message.contains("99"), "{error}");
    assert!(error.hints[0].contains("newer"), "{error:?}");
}

#[test]
fn a_database_that_stays_locked_is_busy_and_nothing_is_half_written() {
    let it = fixture();
    run_one(&it.store);
    let store = Store::open_with_patience(&it.state, Duration::from_millis(50)).unwrap();
    let record = running();
    let opened = store.plan("o", &record).unwrap();
    let blocker = it.database();
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.plan("o", &running()).unwrap_err();
    assert_clear(&error, Code::Busy);
    assert!(error.retry.allowed);
    let end = ended(record, Status::Succeeded);
    let unclosed = store.close(opened, end.clone()).unwrap_err();
    assert_clear(&unclosed.error, Code::Busy);
    assert_eq!(
        store
            .verify(&SpaceId::local(), &Expectations::default())
            .unwrap()
            .entries,
        3
    );
    blocker.execute_batch("ROLLBACK").unwrap();
    let closed = store.close(unclosed.opened, *unclosed.record).unwrap();
    assert_eq!(closed.receipt.unwrap().seq, 4);
    assert!(it.verify().is_sound());
}

#[test]
fn a_read_only_state_directory_is_refused() {
    let it = fixture();
    run_one(&it.store);
    let path = it.state.path();
    // Permissions do not hold root back, and only root may mount.
    let Some(_mount) = TestMount::bind_read_only(path) else {
        fs::set_permissions(path, fs::Permissions::from_mode(0o500)).unwrap();
        let error = StateDir::open(path).unwrap_err();
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
        return assert_clear(&error, Code::StoreUnavailable);
    };
    assert_clear(&StateDir::open(path).unwrap_err(), Code::StoreUnavailable);
    let later = Store::open(&it.state).and_then(|store| store.plan("o", &running()).map(drop));
    assert_clear(&later.unwrap_err(), Code::StoreUnavailable);
    assert_eq!(it.verify().entries, 2);
}

/// Unmounts when dropped, also when the test fails.
struct TestMount<'p>(&'p Path);

impl<'p> TestMount<'p> {
    fn bind_read_only(path: &'p Path) -> Option<Self> {
        use rustix::mount::{MountFlags, mount_bind, mount_remount};
        mount_bind(path, path).ok()?;
        let mount = Self(path);
        mount_remount(path, MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
        Some(mount)
    }

    fn tmpfs(path: &'p Path, options: &std::ffi::CStr) -> Option<Self> {
        use rustix::mount::{MountFlags, mount};
        mount("glovebox-test", path, "tmpfs", MountFlags::empty(), options).ok()?;
        Some(Self(path))
    }
}

impl Drop for TestMount<'_> {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0, rustix::mount::UnmountFlags::DETACH);
    }
}

/// Fills the disk with execs; returns the error and how many were acknowledged.
fn fill(store: &Store) -> (Error, u64) {
    let mut acknowledged = 0;
    loop {
        let record = running();
        match store.plan("o", &record) {
            Ok(_) => acknowledged += 1,
            Err(error) => return (error, acknowledged),
        }
        assert!(acknowledged < 100_000, "the disk never fills");
    }
}

#[test]
fn a_full_disk_fails_whole_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small");
    fs::create_dir(&path).unwrap();
    let Some(_mount) = TestMount::tmpfs(&path, c"size=1m,mode=700") else {
        return; // Needs root; the limit on file sizes below does not.
    };
    let state = StateDir::open(&path).unwrap();
    let store = Store::open(&state).unwrap();
    let (error, acknowledged) = fill(&store);
    assert_clear(&error, Code::DiskFull);
    assert!(acknowledged > 10);
    let again = store.plan("o", &running()).unwrap_err();
    assert_eq!(again.code, Code::DiskFull, "{again}");
    drop(store);
    let store = Store::open(&state).unwrap();
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, acknowledged);
}

#[test]
fn a_disk_that_is_full_from_the_start_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tiny");
    fs::create_dir(&path).unwrap();
    let Some(_mount) = TestMount::tmpfs(&path, c"size=64k,mode=700") else {
        return; // Needs root.
    };
    let state = StateDir::open(&path).unwrap();
    fs::write(path.join("ballast"), vec![0; 1 << 20]).unwrap_err();
    assert_clear(&Store::open(&state).unwrap_err(), Code::DiskFull);
    assert_clear(&Owner::claim(&state).unwrap_err(), Code::DiskFull);
    assert_eq!(fs::read_dir(state.owners()).unwrap().count(), 0);
}

#[test]
fn files_that_may_not_grow_fail_whole_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let child = "exec \"$0\" --exact --ignored --nocapture failures::child_fills_the_disk";
    let limited = Command::new("sh")
        .args(["-c", &format!("trap '' XFSZ; ulimit -f 1024; {child}")])
        .arg(std::env::current_exe().unwrap())
        .env("GLOVEBOX_TEST_STATE", dir.path().join("state"))
        .output()
        .unwrap();
    assert!(limited.status.success(), "{limited:?}");
    let said = String::from_utf8_lossy(&limited.stdout).into_owned();
    assert!(said.contains("1 passed"), "the child ran: {said}");
}

#[test]
#[ignore = "run as a child process with a limit on file sizes"]
fn child_fills_the_disk() {
    let state = StateDir::open(std::env::var_os("GLOVEBOX_TEST_STATE").unwrap()).unwrap();
    let store = Store::open(&state).unwrap();
    let (error, acknowledged) = fill(&store);
    assert!(
        matches!(error.code, Code::DiskFull | Code::StoreUnavailable),
        "{error}"
    );
    drop(store);
    let store = Store::open(&state).unwrap();
    let verification = store
        .verify(&SpaceId::local(), &Expectations::default())
        .unwrap();
    assert!(verification.is_sound(), "{verification:?}");
    assert_eq!(verification.entries, acknowledged);
}
