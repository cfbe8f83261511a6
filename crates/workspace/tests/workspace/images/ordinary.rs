//! The same without root's powers, which would open every door.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use glovebox_workspace::image::{ImageFormat, ImageSource};
use rustix::process::{Gid, Uid};

use crate::archives::tar::Tar;
use crate::images::state::{name, open};

const NOBODY: u32 = 65534;

/// Gives up root for one thread only: nothing else in the process may notice.
fn as_nobody(act: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
            }
            act();
        });
        thread.join().unwrap();
    });
}

#[test]
fn an_ordinary_user_imports_uses_and_removes_what_nobody_may_enter() {
    let tmp = tempfile::tempdir().unwrap();
    let state = tmp.path().join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(tmp.path(), PermissionsExt::from_mode(0o755)).unwrap();
    if rustix::process::geteuid().is_root() {
        chown(&state, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let archive = Tar::new()
        .mode(b'5', "locked/", 0, "")
        .mode(b'5', "locked/deeper/", 0o555, "")
        .mode(b'0', "locked/deeper/f", 0, "text")
        .mode(b'0', "set", 0o4755, "set")
        .file("locked/.wh.none", "")
        .file("locked/deeper/g", "gone")
        .file("locked/deeper/g", "again")
        .end();
    as_nobody(|| {
        let images = open(&state).unwrap();
        let source = ImageSource::Archive(Box::new(archive.as_slice()));
        let format = ImageFormat::Rootfs;
        let record = images
            .import(source, &name("mine"), format, &mut |_| ())
            .unwrap();
        assert_eq!(record.files, 3);
        let held = images.hold(&name("mine")).unwrap();
        let path = glovebox_workspace::RelPath::new("locked/deeper/f").unwrap();
        assert_eq!(held.rootfs().read(&path, 10).unwrap(), b"text");
        let digest = record.digest.to_string().replace("sha256:", "");
        let rootfs = state.join("images").join(digest).join("rootfs");
        let meta = |path: &str| std::fs::metadata(rootfs.join(path)).unwrap();
        assert_eq!(meta("set").mode() & 0o7777, 0o755);
        assert_eq!(meta("locked").mode() & 0o7777, 0o700);
        assert_eq!(meta("locked").uid(), rustix::process::geteuid().as_raw());
        drop(held);
        assert!(images.rm(&name("mine")).unwrap().files_removed);
        assert!(!rootfs.exists());
    });
}
