//! What a container engine is told.

use std::path::Path;

use glovebox_model::{Access, Code};
use glovebox_workspace::adapter::{EngineView, HostPath, PosixPath};

#[test]
fn a_mount_is_written_so_that_no_path_ends_it() {
    let target = PosixPath::parse("/workspace/work").unwrap();
    for (source, access, option) in [
        (
            r"D:\my work",
            Access::Rw,
            Some(r"type=bind,source=D:\my work,target=/workspace/work"),
        ),
        (
            "/srv/a:b",
            Access::Ro,
            Some("type=bind,source=/srv/a:b,target=/workspace/work,readonly"),
        ),
        (
            "/srv/a,readonly=false,\"x",
            Access::Ro,
            Some(
                "type=bind,\"source=/srv/a,readonly=false,\"\"x\",target=/workspace/work,readonly",
            ),
        ),
        ("/srv/a", Access::None, None),
    ] {
        let path = HostPath::parse(source).unwrap();
        let made = path.mount_option(&target, access).unwrap();
        assert_eq!(made.as_deref(), option);
    }
}

#[test]
fn an_engine_elsewhere_is_given_its_own_paths() {
    let view = EngineView::At(vec![
        (
            "/data".into(),
            HostPath::parse("/srv/volumes/data").unwrap(),
        ),
        ("/data/deep".into(), HostPath::parse(r"D:\deep").unwrap()),
    ]);
    for (ours, theirs) in [
        ("/data", "/srv/volumes/data"),
        ("/data/x/y", "/srv/volumes/data/x/y"),
        ("/data/deep", r"D:\deep"),
        ("/data/deep/z/w", r"D:\deep\z\w"),
        ("/data/deeper", "/srv/volumes/data/deeper"),
    ] {
        let found = view.translate(Path::new(ours)).unwrap();
        assert_eq!(found.to_string(), theirs);
    }
    for (ours, code) in [
        ("/database", Code::BackendUnavailable),
        ("/", Code::BackendUnavailable),
        ("/data/../etc", Code::WorkspaceRefused),
        ("/data/deep/aux", Code::WorkspaceRefused),
        ("/data/deep/a:b", Code::WorkspaceRefused),
        ("/data/a\nb", Code::WorkspaceRefused),
    ] {
        let error = view.translate(Path::new(ours)).unwrap_err();
        assert_eq!(error.code, code, "{ours}");
        assert!(!error.hints.is_empty(), "{ours}");
    }
    let same = EngineView::Same;
    let found = same.translate(Path::new("/srv/a b")).unwrap();
    assert_eq!(found.to_string(), "/srv/a b");
    assert!(same.translate(Path::new("srv")).is_err());
    assert!(EngineView::at(Path::new("/data"), "state").is_err());
    assert!(EngineView::at(Path::new("/data"), r"D:\state").is_ok());
}
