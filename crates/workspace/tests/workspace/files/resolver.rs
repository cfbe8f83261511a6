//! F056: without `openat2` nothing is opened at all, and a tree that never holds still is given up.

use std::collections::BTreeMap;

use crate::files::place::{place, rel};
use glovebox_model::{Code, Stage};
use glovebox_workspace::{Dir, Existing, FsError, FsErrorKind};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

const SYS_OPENAT2: i64 = 437;

fn every_operation(dir: &Dir) -> Vec<FsError> {
    vec![
        dir.read(&rel("file"), 100).unwrap_err(),
        dir.write(&rel("new"), b"x", 0o644).unwrap_err(),
        dir.create(&rel("new"), 0o644).unwrap_err(),
        dir.open_dir(&rel("sub")).unwrap_err(),
        dir.mkdir(&rel("sub/new"), 0o755).unwrap_err(),
        dir.mkdir_all(&rel("a/b"), 0o755).unwrap_err(),
        dir.lstat(&rel("file")).unwrap_err(),
        dir.list(10).unwrap_err(),
        dir.remove_file(&rel("sub/x")).unwrap_err(),
        dir.remove_all(&rel("sub")).unwrap_err(),
        dir.clear().unwrap_err(),
        dir.rename(&rel("sub/x"), &rel("y"), Existing::Replace)
            .unwrap_err(),
    ]
}

fn fails_closed_when_the_kernel_answers(errno: u32, kind: FsErrorKind, code: Code) {
    let place = place();
    place.file("file", b"x");
    place.file("sub/x", b"x");
    let errors = std::thread::scope(|scope| {
        let filtered = scope.spawn(|| {
            let filter = SeccompFilter::new(
                BTreeMap::from([(SYS_OPENAT2, vec![])]),
                SeccompAction::Allow,
                SeccompAction::Errno(errno),
                std::env::consts::ARCH.try_into().unwrap(),
            );
            let program: BpfProgram = filter.unwrap().try_into().unwrap();
            apply_filter(&program).unwrap();
            every_operation(&place.dir)
        });
        filtered.join().unwrap()
    });
    for error in errors {
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(error.at(Stage::Open).code, code);
    }
    assert_eq!(place.read("file").unwrap(), b"x");
    assert_eq!(place.read("sub/x").unwrap(), b"x");
    assert_eq!(place.dir.list(10).unwrap().entries.len(), 2);
}

#[test]
fn f056_an_old_kernel_means_no_access() {
    const ENOSYS: u32 = 38;
    fails_closed_when_the_kernel_answers(ENOSYS, FsErrorKind::ResolverMissing, Code::SetupFailed);
}

#[test]
fn f056_a_filter_that_forbids_the_call_means_no_access() {
    const EPERM: u32 = 1;
    fails_closed_when_the_kernel_answers(EPERM, FsErrorKind::ResolverMissing, Code::SetupFailed);
}

#[test]
fn renames_that_never_stop_are_given_up_on() {
    const EAGAIN: u32 = 11;
    fails_closed_when_the_kernel_answers(EAGAIN, FsErrorKind::Contended, Code::Busy);
}
