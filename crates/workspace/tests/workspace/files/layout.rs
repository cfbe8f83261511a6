//! Where things lie, what may be adopted, and what may be sent along.

use std::path::Path;

use glovebox_capture::Secrets;
use glovebox_model::{ByteString, Code, ExecId, Input, ProjectId, Stream};
use glovebox_workspace::{Dir, FsErrorKind, Layout, WorkKind};

use crate::files::place::{Place, place, rel};

fn layout(place: &Place) -> Layout {
    std::fs::create_dir_all(place.inside.join("state")).unwrap();
    Layout::open(Dir::open_trusted(&place.inside.join("state")).unwrap()).unwrap()
}

fn exec(n: u8) -> ExecId {
    ExecId::from_random([n; 16])
}

fn id(text: &str) -> ProjectId {
    text.parse().unwrap()
}

fn input(path: &[u8], content: &[u8]) -> Input {
    Input {
        path: ByteString::new(path).unwrap(),
        content: content.to_vec(),
    }
}

#[test]
fn a_managed_project_has_the_three_directories() {
    let place = place();
    let layout = layout(&place);
    let project = layout.project(&id("demo")).unwrap();
    assert_eq!(project.kind(), WorkKind::Managed);
    project
        .work()
        .unwrap()
        .write(&rel("kept"), b"x", 0o644)
        .unwrap();
    let files = project.begin(&exec(1), &[]).unwrap();
    files.artifacts().write(&rel("out"), b"y", 0o644).unwrap();
    let home = place.inside.join("state/projects/demo");
    assert_eq!(std::fs::read(home.join("work/kept")).unwrap(), b"x");
    assert_eq!(
        files.path(),
        format!("projects/demo/artifacts/{}", exec(1)),
        "relative to the state directory"
    );
    let out = place.inside.join("state").join(files.path()).join("out");
    assert_eq!(std::fs::read(out).unwrap(), b"y");
    assert!(home.join("inputs").is_dir());
    // A second opening finds the same directories.
    let again = layout.project(&id("demo")).unwrap();
    let same = |dir: &Dir| dir.id().unwrap();
    assert_eq!(same(again.work().unwrap()), same(project.work().unwrap()));
}

#[test]
fn an_exec_id_is_used_once() {
    let place = place();
    let project = layout(&place).project(&id("demo")).unwrap();
    project.begin(&exec(1), &[]).unwrap();
    let error = project.begin(&exec(1), &[]).unwrap_err();
    assert_eq!(error.code, Code::Conflict);
}

#[test]
fn names_that_glovebox_uses_itself_are_not_projects() {
    let place = place();
    let layout = layout(&place);
    for name in ["scratch", "cwd-0123456789abcdef"] {
        let error = layout.project(&id(name)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{name}");
    }
}

#[test]
fn an_adopted_directory_keeps_its_place_and_gets_an_id() {
    let place = place();
    let layout = layout(&place);
    place.file("app/main.py", b"print(1)");
    place.link("app", "link");
    let direct = layout.adopt(&place.inside.join("app"), &[]).unwrap();
    let linked = layout.adopt(&place.inside.join("link"), &[]).unwrap();
    assert_eq!(direct.id(), linked.id(), "a link is resolved first");
    let (prefix, digits) = direct.id().as_str().split_at(4);
    assert_eq!((prefix, digits.len()), ("cwd-", 16));
    std::fs::remove_file(place.inside.join("link")).unwrap();
    place.link(&place.outside, "link");
    let work = linked.work().unwrap();
    assert_eq!(work.read(&rel("main.py"), 100).unwrap(), b"print(1)");
    let files = linked.begin(&exec(1), &[]).unwrap();
    assert!(files.path().starts_with("projects/cwd-"));
    let listing = std::fs::read_dir(place.inside.join("app")).unwrap();
    assert_eq!(
        listing.count(),
        1,
        "nothing of ours in the caller's directory"
    );
}

#[test]
fn what_must_not_be_adopted_is_refused_with_a_way_out() {
    let place = place();
    let layout = layout(&place);
    let home = place.inside.join("home/me");
    std::fs::create_dir_all(home.join("app")).unwrap();
    place.file("plain", b"");
    place.link("/", "root");
    place.link(&home, "home-link");
    place.link("/etc", "etc-link");
    let state = place.inside.join("state");
    let cases: Vec<(std::path::PathBuf, &str)> = vec![
        ("/".into(), "whole machine"),
        (place.inside.join("root"), "whole machine"),
        ("/proc/self/root".into(), "whole machine"),
        (home.clone(), "home directory itself"),
        (place.inside.join("home-link"), "home directory itself"),
        (place.inside.join("home"), "home directory is inside it"),
        (state.clone(), "its own state"),
        (place.inside.clone(), "inside it"),
        (state.join("projects"), "inside Glovebox's state directory"),
        (
            place.inside.join("etc-link"),
            "`/etc` belongs to the system",
        ),
        ("/usr".into(), "`/usr` belongs to the system"),
        ("/usr/bin".into(), "belongs to the system"),
        ("/proc/1".into(), "`/proc` belongs to the system"),
        ("/dev".into(), "`/dev` belongs to the system"),
        ("/var".into(), "`/var` belongs to the system"),
        (place.inside.join("plain"), "is not a directory"),
        (place.inside.join("missing"), "does not exist"),
    ];
    for (path, why) in cases {
        let error = layout.adopt(&path, &[&home]).unwrap_err();
        assert_eq!(error.code, Code::WorkspaceRefused, "{}", path.display());
        assert!(error.message.contains(why), "{}: {error}", path.display());
        assert!(!error.hints.is_empty());
    }
    layout.adopt(&home.join("app"), &[&home]).unwrap();
    let missing_home = Path::new("/nonexistent/home");
    layout.adopt(&home.join("app"), &[missing_home]).unwrap();
}

#[test]
fn scratch_has_no_work_and_inputs_of_its_own() {
    let place = place();
    let project = layout(&place).scratch().unwrap();
    assert!(project.work().is_none());
    assert!(project.begin(&exec(1), &[]).unwrap().inputs().is_none());
    let given = [input(b"a", b"1")];
    let files = project.begin(&exec(2), &given).unwrap();
    let other = project.begin(&exec(3), &[input(b"b", b"2")]).unwrap();
    let names = |dir: &Dir| dir.list(10).unwrap().entries.len();
    assert_eq!(names(files.inputs().unwrap()), 1);
    project.forget_inputs(&exec(2)).unwrap();
    project.forget_inputs(&exec(2)).unwrap();
    let gone = files.inputs().unwrap().list(10).unwrap_err();
    assert_eq!(gone.kind(), FsErrorKind::NotFound);
    assert_eq!(names(other.inputs().unwrap()), 1);
}

#[test]
fn inputs_are_placed_read_only() {
    let place = place();
    let project = layout(&place).project(&id("demo")).unwrap();
    let given = [
        input(b"./a//b/data.csv", b"1,2"),
        input(b"back\\slash", b"x"),
        input(b"raw\xff", b"y"),
    ];
    let files = project.begin(&exec(1), &given).unwrap();
    let inputs = files.inputs().unwrap();
    let data = rel("a/b/data.csv");
    assert_eq!(inputs.read(&data, 10).unwrap(), b"1,2");
    assert_eq!(inputs.lstat(&data).unwrap().mode, 0o444);
    assert_eq!(inputs.read(&rel("back\\slash"), 10).unwrap(), b"x");
    // The next exec may send a newer one.
    let newer = [input(b"a/b/data.csv", b"3")];
    project.begin(&exec(2), &newer).unwrap();
    assert_eq!(inputs.read(&data, 10).unwrap(), b"3");
}

#[test]
fn one_wrong_input_means_that_nothing_is_placed() {
    let place = place();
    let project = layout(&place).project(&id("demo")).unwrap();
    let wrong: [&[&[u8]]; 10] = [
        &[b""],
        &[b"/etc/x"],
        &[b"../x"],
        &[b"a/../../x"],
        &[b"a/../b"],
        &[b".."],
        &[b"."],
        &[b"same", b"./same"],
        &[b"file", b"file/below"],
        &[b"ok/deep/x", b"ok-2", b"ok"],
    ];
    for paths in wrong {
        let mut given = vec![input(b"good", b"")];
        given.extend(paths.iter().map(|path| input(path, b"")));
        let error = project.begin(&exec(1), &given).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{error}");
        assert!(error.message.starts_with("input path `"), "{error}");
    }
    let home = place.inside.join("state/projects/demo");
    assert!(!home.join("inputs").exists() && !home.join("artifacts").exists());
    project.begin(&exec(1), &[input(b"good", b"")]).unwrap();
}

#[test]
fn a_running_streams_own_file_is_read_and_not_the_guests() {
    let place = place();
    let layout = layout(&place);
    let project = layout.project(&id("demo")).unwrap();
    let files = project.begin(&exec(1), &[]).unwrap();
    files
        .artifacts()
        .write(&rel("stdout.txt"), b"forged", 0o644)
        .unwrap();
    let mut stdout = files.sink(Stream::Stdout, 100).unwrap();
    let stderr = files.sink(Stream::Stderr, 100).unwrap();
    stdout.push(b"true");
    let read = || {
        let file = layout
            .stream(&id("demo"), &exec(1), Stream::Stdout)
            .unwrap();
        std::io::read_to_string(file).unwrap()
    };
    assert_eq!(read(), "true", "while it runs");
    files
        .settle(&stdout.finish(), &stderr.finish(), 1000, &Secrets::none())
        .unwrap();
    assert_eq!(read(), "true", "and after");
    let error = layout.stream(&id("demo"), &exec(2), Stream::Stdout);
    assert_eq!(error.unwrap_err().code, Code::NotFound);
    assert_eq!(
        layout.artifacts(&id("other"), &exec(1)).unwrap_err().code,
        Code::NotFound
    );
}

#[test]
fn an_exec_that_never_started_leaves_nothing() {
    let place = place();
    let project = layout(&place).project(&id("demo")).unwrap();
    let files = project.begin(&exec(1), &[]).unwrap();
    let _sink = files.sink(Stream::Stdout, 100).unwrap();
    files.discard().unwrap();
    let shelf = place.inside.join("state/projects/demo/artifacts");
    assert_eq!(std::fs::read_dir(shelf).unwrap().count(), 0);
}
