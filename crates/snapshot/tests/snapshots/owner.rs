//! An ordinary user, for whom modes mean something: their own locked files are taken and undone.
//! Root runs this again as nobody, from a copy of the test binary that nobody can read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use glovebox_model::Code;

use crate::ground::Ground;

const ROOM: &str = "GLOVEBOX_TEST_SNAPSHOT_OWNER";
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn what_an_ordinary_owner_has_locked_is_taken_and_comes_back() {
    let room = tempfile::tempdir().unwrap();
    let program = room.path().join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let place = room.path().join("place");
    fs::create_dir(&place).unwrap();
    set_mode(room.path(), 0o755);
    set_mode(&program, 0o755);
    let mut command = Command::new(&program);
    command
        .args(["--exact", "owner::child", "--nocapture"])
        .current_dir("/")
        .env(ROOM, &place);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&place, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("everything held"), "{said}");
}

#[test]
fn child() {
    let Some(room) = std::env::var_os(ROOM) else {
        return;
    };
    let ground = Ground::at(Path::new(&room));
    ground.write("secret", "locked away");
    ground.write("shelf/book", "read only");
    ground.write("open/file", "x");
    set_mode(&ground.path("secret"), 0o000);
    set_mode(&ground.path("shelf"), 0o555);
    let taken = ground.take();
    assert_eq!(
        mode(&ground.path("secret")),
        0o000,
        "the mode was given back"
    );

    // As a program might leave it: everything locked, one file changed, one added.
    set_mode(&ground.path("shelf"), 0o755);
    ground.write("shelf/book", "scribbled");
    ground.write("shelf/more", "junk");
    fs::remove_file(ground.path("secret")).unwrap();
    set_mode(&ground.path("shelf"), 0o000);
    let error = ground.try_take(Default::default()).unwrap_err();
    assert_eq!(error.code, Code::StoreUnavailable);
    assert!(error.message.contains("shelf"), "{error}");

    ground.restore(&taken.snapshot.id);
    assert_eq!(mode(&ground.path("secret")), 0o000);
    assert_eq!(mode(&ground.path("shelf")), 0o555);
    set_mode(&ground.path("secret"), 0o400);
    assert_eq!(fs::read(ground.path("secret")).unwrap(), b"locked away");
    assert_eq!(fs::read(ground.path("shelf/book")).unwrap(), b"read only");
    assert!(!ground.path("shelf/more").exists());
    // So that the directory can be removed.
    set_mode(&ground.path("shelf"), 0o755);
    use std::io::Write;
    writeln!(std::io::stderr(), "everything held").unwrap();
}
