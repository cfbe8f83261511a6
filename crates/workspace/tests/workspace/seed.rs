//! Requirements 2.20, 2.21 and 4.16: a workspace's first files, and back to them. Both trees are
//! hostile here.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_model::{ByteString, Code, Error, ExecId, Input, Result, Stage, Stream};
use glovebox_workspace::{
    Dir, Layout, Project, Reset, SeedLimits, SeedRoom, SeedSkip, Seeded, WorkKind, seed,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, mkdirat, mknodat, openat};

fn endless(_: u64, _: u64) -> Result<()> {
    Ok(())
}

struct Ground {
    _tmp: tempfile::TempDir,
    base: PathBuf,
}

impl Ground {
    fn new() -> Self {
        Self::below(&std::env::temp_dir())
    }

    fn below(parent: &Path) -> Self {
        let tmp = tempfile::tempdir_in(parent).unwrap();
        let base = tmp.path().canonicalize().unwrap();
        for name in ["template", "work", "outside", "state"] {
            std::fs::create_dir(base.join(name)).unwrap();
        }
        std::fs::write(base.join("outside/canary"), "canary").unwrap();
        Self { _tmp: tmp, base }
    }

    fn file(&self, path: &str, contents: &str) {
        let path = self.base.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    fn link(&self, target: &str, path: &str) {
        symlink(target, self.base.join(path)).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.base.join(path)).unwrap()
    }

    fn dir(&self, name: &str) -> Dir {
        Dir::open_trusted(&self.base.join(name)).unwrap()
    }

    fn seed(&self) -> Seeded {
        let limits = SeedLimits::default();
        seed(&self.dir("template"), &self.dir("work"), limits, &endless).unwrap()
    }

    fn project(&self) -> Project {
        let layout = Layout::open(self.dir("state")).unwrap();
        layout.project(&"demo".parse().unwrap()).unwrap()
    }

    fn work_of_project(&self) -> PathBuf {
        self.base.join("state/projects/demo/work")
    }

    fn assert_outside_untouched(&self) {
        assert_eq!(names(&self.base.join("outside")), ["canary"]);
        assert_eq!(self.read("outside/canary"), "canary");
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn shown(paths: &[ByteString]) -> Vec<String> {
    paths.iter().map(ByteString::display).collect()
}

fn skipped(seeded: &Seeded) -> BTreeMap<String, SeedSkip> {
    let pairs = seeded.skipped.iter().map(|it| (it.path.display(), it.why));
    pairs.collect()
}

fn nobody(_: &ExecId) -> bool {
    false
}

fn repository(path: &str) -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    crates.parent().unwrap().join(path)
}

#[test]
fn a_template_is_copied_and_a_second_time_kept() {
    let ground = Ground::new();
    ground.file("template/task_plan.md", "plan");
    ground.file("template/.memory/findings.md", "found");
    ground.file("template/code/run.sh", "#!/bin/sh\n");
    let script = ground.base.join("template/code/run.sh");
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o777)).unwrap();
    ground.file("template/data/.gitkeep", "");
    ground.link("task_plan.md", "template/plan");
    ground.link("../task_plan.md", "template/code/plan");
    ground.link("not-yet", "template/later");

    let first = ground.seed();
    assert_eq!(
        shown(&first.made),
        [
            ".memory",
            "code",
            "data",
            "later",
            "plan",
            "task_plan.md",
            ".memory/findings.md",
            "code/plan",
            "code/run.sh",
        ]
    );
    assert_eq!((first.kept.len(), first.skipped.len()), (0, 0));
    assert_eq!(ground.read("work/.memory/findings.md"), "found");
    assert_eq!(ground.read("work/code/plan"), "plan");
    assert_eq!(names(&ground.base.join("work/data")), [""; 0]);
    let mode = |path: &str| ground.base.join(path).metadata().unwrap().mode() & 0o7777;
    assert_eq!(mode("work/code/run.sh"), 0o755, "others never write");
    assert_eq!(
        names(&ground.base.join("work")),
        [".memory", "code", "data", "later", "plan", "task_plan.md"],
        "and nothing else is left there"
    );

    ground.file("work/task_plan.md", "mine");
    std::fs::remove_file(ground.base.join("work/code/run.sh")).unwrap();
    let second = ground.seed();
    assert_eq!(shown(&second.made), ["code/run.sh"]);
    assert_eq!(second.kept.len(), first.made.len() - 1);
    assert_eq!(ground.read("work/task_plan.md"), "mine");
}

#[test]
fn what_stands_there_is_never_replaced_and_never_followed() {
    let ground = Ground::new();
    let outside = ground.base.join("outside");
    for name in ["AGENTS.md", "dangling.md", "dir.md", "fifo.md", "empty.md"] {
        ground.file(&format!("template/{name}"), "template");
    }
    ground.file("template/code/new", "template");
    ground.file("template/data/deep/new", "template");
    ground.file("template/out/new", "template");
    // The guest's: links out, a dangling one that would make a file outside, a file for a directory.
    ground.link(outside.join("canary").to_str().unwrap(), "work/AGENTS.md");
    ground.link(outside.join("made").to_str().unwrap(), "work/dangling.md");
    std::fs::create_dir(ground.base.join("work/dir.md")).unwrap();
    mknodat(
        CWD,
        ground.base.join("work/fifo.md"),
        FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    ground.file("work/empty.md", "");
    ground.link(outside.to_str().unwrap(), "work/code");
    ground.file("work/data", "a file");
    std::fs::create_dir(ground.base.join("work/inner")).unwrap();
    ground.link("inner", "work/out");

    let seeded = ground.seed();
    assert_eq!(
        shown(&seeded.kept),
        ["AGENTS.md", "dangling.md", "dir.md", "empty.md", "fifo.md"]
    );
    assert_eq!(shown(&seeded.made), [""; 0]);
    let expected = [
        "code",
        "code/new",
        "data",
        "data/deep",
        "data/deep/new",
        "out",
        "out/new",
    ];
    let expected = expected.map(|path| (path.to_owned(), SeedSkip::InTheWay));
    assert_eq!(skipped(&seeded), BTreeMap::from(expected));
    assert_eq!(names(&ground.base.join("work/inner")), [""; 0]);
    assert_eq!(
        ground.read("work/empty.md"),
        "",
        "even an empty file is kept"
    );
    ground.assert_outside_untouched();
}

#[test]
fn links_that_lead_out_and_special_files_of_a_template_are_told() {
    let ground = Ground::new();
    let outside = ground.base.join("outside");
    ground.link(
        outside.join("canary").to_str().unwrap(),
        "template/absolute",
    );
    ground.link("../outside/canary", "template/up");
    ground.link("/proc/self/root/etc/passwd", "template/magic");
    std::fs::create_dir(ground.base.join("template/d")).unwrap();
    ground.link("../../outside", "template/d/up");
    ground.link("..", "template/d/top");
    ground.link("absolute", "template/through");
    ground.link("loop", "template/loop");
    ground.link("d/../../outside/canary", "template/behind");
    let fifo = ground.base.join("template/fifo");
    mknodat(CWD, fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(ground.base.join("template/socket"));

    let seeded = ground.seed();
    let told = |path: &str, why| (path.to_owned(), why);
    assert_eq!(
        skipped(&seeded),
        BTreeMap::from([
            told("absolute", SeedSkip::LeadsOut),
            told("behind", SeedSkip::LeadsOut),
            told("d/up", SeedSkip::LeadsOut),
            told("fifo", SeedSkip::Special),
            told("loop", SeedSkip::LeadsOut),
            told("magic", SeedSkip::LeadsOut),
            told("socket", SeedSkip::Special),
            told("through", SeedSkip::LeadsOut),
            told("up", SeedSkip::LeadsOut),
        ])
    );
    assert_eq!(shown(&seeded.made), ["d", "d/top"]);
    drop(socket);
}

#[test]
fn a_template_over_its_limits_makes_nothing() {
    let ground = Ground::new();
    ground.file("template/a/b/c/file", &"x".repeat(1000));
    ground.file("template/other", "x");
    let fits = SeedLimits {
        entries: 5,
        bytes: 1001,
        depth: 3,
    };
    for limits in [
        SeedLimits { entries: 4, ..fits },
        SeedLimits {
            bytes: 1000,
            ..fits
        },
        SeedLimits { depth: 2, ..fits },
    ] {
        let error = seed(
            &ground.dir("template"),
            &ground.dir("work"),
            limits,
            &endless,
        )
        .unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument, "{limits:?}");
        assert!(!error.hints.is_empty());
        assert_eq!(names(&ground.base.join("work")), [""; 0], "{limits:?}");
    }
    let seeded = seed(&ground.dir("template"), &ground.dir("work"), fits, &endless).unwrap();
    assert_eq!(seeded.made.len(), 5);
    let itself = seed(&ground.dir("work"), &ground.dir("work"), fits, &endless).unwrap_err();
    assert_eq!(itself.code, Code::InvalidArgument);
}

/// The kernel's own files say that they are empty and have bytes all the same.
#[test]
fn a_size_is_counted_and_not_believed() {
    let ground = Ground::new();
    let kernel = Path::new("/proc/sys/kernel/random");
    assert_eq!(kernel.join("boot_id").metadata().unwrap().len(), 0);
    let limits = SeedLimits {
        bytes: 10,
        ..SeedLimits::default()
    };
    let kernel = Dir::open_trusted(kernel).unwrap();
    let error = seed(&kernel, &ground.dir("work"), limits, &endless).unwrap_err();
    assert!(error.message.contains("boot_id"), "{}", error.message);
    assert!(error.message.contains("10 bytes"), "{}", error.message);
    assert_eq!(names(&ground.base.join("work")), [""; 0], "no part of it");
}

/// What is missing counts in blocks, and what is there already does not.
#[test]
fn room_is_asked_for_before_anything_is_made_and_while_it_is_copied() {
    let ground = Ground::new();
    ground.file("template/d/small", "x");
    ground.file("template/large", &"x".repeat(5000));
    ground.file("template/empty/.gitkeep", "");
    ground.link("large", "template/link");
    let (template, work) = (ground.dir("template"), ground.dir("work"));
    let full = || Error::new(Code::DiskFull, Stage::Open, "no room");
    let within = |bytes, entries| {
        let room = move |more, new| match more > bytes || new > entries {
            true => Err(full()),
            false => Ok(()),
        };
        seed(&template, &work, SeedLimits::default(), &room)
    };
    let needed = (5 * 4096, 5);
    for (bytes, entries) in [(needed.0 - 1, needed.1), (needed.0, needed.1 - 1)] {
        let error = within(bytes, entries).unwrap_err();
        assert_eq!(error.code, Code::DiskFull, "{bytes} {entries}");
        assert_eq!(names(&ground.base.join("work")), [""; 0]);
    }
    assert_eq!(within(needed.0, needed.1).unwrap().made.len(), 5);
    assert_eq!(within(0, 0).unwrap().made.len(), 0, "it is all there");
    // They say that they are empty.
    let kernel = Dir::open_trusted(Path::new("/proc/sys/kernel/random")).unwrap();
    let room = |bytes: u64, _| match bytes > 10 {
        true => Err(full()),
        false => Ok(()),
    };
    let error = seed(&kernel, &work, SeedLimits::default(), &room).unwrap_err();
    assert_eq!(error.code, Code::DiskFull);
    assert!(!ground.base.join("work/boot_id").exists());
}

/// A program that runs there exchanges a directory and a link out while files are put into it.
#[test]
fn a_directory_that_becomes_a_link_meanwhile_leads_nowhere() {
    let ground = Ground::new();
    for file in 0..5 {
        ground.file(&format!("template/code/{file}"), "x");
    }
    let work = ground.base.join("work");
    std::fs::create_dir(work.join("code")).unwrap();
    ground.link(ground.base.join("outside").to_str().unwrap(), "work/evil");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (mut made, mut blocked) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let flags = rustix::fs::RenameFlags::EXCHANGE;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let (code, evil) = (work.join("code"), work.join("evil"));
                rustix::fs::renameat_with(CWD, code, CWD, evil, flags).unwrap();
            }
        });
        for round in 0..20_000 {
            if round >= 200 && made > 0 && blocked > 0 {
                break;
            }
            let seeded = ground.seed();
            made += seeded.made.len();
            blocked += seeded.skipped.len();
            for name in ["code", "evil"].map(|name| work.join(name)) {
                for file in 0..5 {
                    // Through the link there is nothing to remove.
                    let _ = std::fs::remove_file(name.join(file.to_string()));
                }
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    ground.assert_outside_untouched();
    assert!(made > 0 && blocked > 0, "made {made}, blocked {blocked}");
}

#[test]
fn files_belong_to_whoever_the_workspace_belongs_to() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let ground = Ground::new();
    ground.file("template/d/file", "x");
    ground.link("file", "template/d/link");
    let work = ground.base.join("work");
    std::os::unix::fs::chown(&work, Some(12345), Some(54321)).unwrap();
    ground.seed();
    for path in ["d", "d/file", "d/link"] {
        let facts = std::fs::symlink_metadata(work.join(path)).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (12345, 54321), "{path}");
    }
}

#[test]
fn the_templates_in_the_examples_are_whole() {
    let has = |template: &str| {
        let ground = Ground::new();
        let from = repository("examples/templates").join(template);
        let from = Dir::open_trusted(&from).unwrap();
        let seeded = seed(&from, &ground.dir("work"), SeedLimits::default(), &endless).unwrap();
        assert_eq!(seeded.skipped, []);
        shown(&seeded.made)
    };
    assert_eq!(
        has("task"),
        [
            ".memory",
            "artifacts",
            "code",
            "data",
            "output",
            "temp",
            ".memory/findings.md",
            ".memory/progress.md",
            ".memory/task_plan.md",
        ]
    );
    assert_eq!(
        has("agent"),
        [
            "AGENTS.md",
            "BOOTSTRAP.md",
            "HEARTBEAT.md",
            "IDENTITY.md",
            "SOUL.md",
            "TOOLS.md",
            "USER.md",
        ]
    );
}

#[test]
fn a_hostile_workspace_is_emptied_and_seeded_in_one_call() {
    // The depth takes long on a disk.
    let memory = Path::new("/dev/shm");
    let ground = match tempfile::tempdir_in(memory) {
        Ok(_) => Ground::below(memory),
        Err(_) => Ground::new(),
    };
    ground.file("template/code/main.py", "print()");
    let template = ground.dir("template");
    let project = ground.project();
    let limits = SeedLimits::default();
    project.seed(&template, limits, &endless).unwrap();
    let work = ground.work_of_project();
    let identity = work.metadata().unwrap().ino();

    std::fs::write(work.join("code/main.py"), "evil").unwrap();
    std::fs::write(work.join("-rf"), "").unwrap();
    symlink(ground.base.join("outside"), work.join("out")).unwrap();
    mknodat(CWD, work.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    std::fs::create_dir_all(work.join("locked/inner")).unwrap();
    for path in ["locked/inner", "locked"] {
        let none = PermissionsExt::from_mode(0o000);
        std::fs::set_permissions(work.join(path), none).unwrap();
    }
    let mut at = openat(CWD, &work, OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..3000 {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(at.as_fd(), "d", OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    drop(at);
    let input = Input {
        path: ByteString::new(b"in.txt".to_vec()).unwrap(),
        content: b"in".to_vec(),
    };
    let exec = ExecId::from_random([1; 16]);
    let files = project.begin(&exec, &[input]).unwrap();
    drop(files.sink(Stream::Stdout, 10).unwrap());
    let inputs = ground.base.join("state/projects/demo/inputs");
    let shelf = ground.base.join("state/projects/demo/artifacts");

    let busy = project.reset(Reset::default(), None, &|it| *it == exec);
    assert_eq!(busy.unwrap_err().code, Code::Busy);
    assert!(work.join("-rf").exists(), "nothing was touched");

    let again = Some((&template, limits, &endless as SeedRoom<'_>));
    let done = project.reset(Reset::default(), again, &nobody).unwrap();
    assert_eq!(shown(&done.seeded.made), ["code", "code/main.py"]);
    assert_eq!(names(&work), ["code"]);
    assert_eq!(
        std::fs::read(work.join("code/main.py")).unwrap(),
        b"print()"
    );
    assert_eq!(work.metadata().unwrap().ino(), identity, "mounts stay good");
    assert_eq!(names(&inputs), ["in.txt"]);
    assert!(shelf.join(exec.as_str()).exists());
    ground.assert_outside_untouched();

    let everything = Reset {
        inputs: true,
        artifacts: true,
    };
    let done = project.reset(everything, None, &nobody).unwrap();
    assert_eq!(done.artifacts.removed, [exec]);
    for dir in [&work, &inputs, &shelf] {
        assert_eq!(names(dir), [""; 0]);
    }
    // What was reset is reset once more.
    project.reset(everything, None, &nobody).unwrap();
}

/// Runs itself again in a mount namespace of its own, so that nothing can be left mounted.
#[test]
fn a_workspace_with_a_mount_in_it_is_left_as_it_is() {
    const INSIDE: &str = "GLOVEBOX_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return refuse_a_mount();
    }
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let inside = Command::new("unshare")
        .arg("--mount")
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "seed::a_workspace_with_a_mount_in_it_is_left_as_it_is",
        ])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inside.stdout);
    assert!(inside.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

fn refuse_a_mount() {
    let ground = Ground::new();
    let project = ground.project();
    let work = ground.work_of_project();
    std::fs::write(work.join("a-file"), "").unwrap();
    let point = work.join("x/mnt");
    std::fs::create_dir_all(&point).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("tmpfs", &point, "tmpfs", flags, None).unwrap();
    std::fs::write(point.join("theirs"), "").unwrap();

    let error = project.reset(Reset::default(), None, &nobody).unwrap_err();
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(error.message.contains("x/mnt"), "{}", error.message);
    assert!(error.hints.iter().any(|it| it.contains("unmount")));
    assert_eq!(names(&work), ["a-file", "x"], "nothing was touched");
    assert_eq!(names(&point), ["theirs"]);

    // A bind of the same file system, and a file with another on top of it.
    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).unwrap();
    let outside = ground.base.join("outside");
    rustix::mount::mount_bind(&outside, &point).unwrap();
    assert!(project.reset(Reset::default(), None, &nobody).is_err());
    assert_eq!(names(&work), ["a-file", "x"]);
    rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH).unwrap();
    let file = work.join("a-file");
    rustix::mount::mount_bind(outside.join("canary"), &file).unwrap();
    assert!(project.reset(Reset::default(), None, &nobody).is_err());
    rustix::mount::unmount(&file, rustix::mount::UnmountFlags::DETACH).unwrap();
    ground.assert_outside_untouched();
    project.reset(Reset::default(), None, &nobody).unwrap();
    assert_eq!(names(&work), [""; 0]);
}

#[test]
fn a_directory_of_ones_own_is_not_emptied() {
    let ground = Ground::new();
    ground.file("work/mine", "mine");
    ground.file("template/AGENTS.md", "x");
    let layout = Layout::open(ground.dir("state")).unwrap();
    let adopted = layout.adopt(&ground.base.join("work"), &[]).unwrap();
    assert_eq!(adopted.kind(), WorkKind::Adopted);
    let error = adopted.reset(Reset::default(), None, &nobody).unwrap_err();
    assert_eq!(error.code, Code::WorkspaceRefused);
    assert_eq!(ground.read("work/mine"), "mine");
    let limits = SeedLimits::default();
    adopted
        .seed(&ground.dir("template"), limits, &endless)
        .unwrap();
    assert_eq!(names(&ground.base.join("work")), ["AGENTS.md", "mine"]);
    let scratch = layout.scratch().unwrap();
    for error in [
        scratch.reset(Reset::default(), None, &nobody).unwrap_err(),
        scratch
            .seed(&ground.dir("template"), limits, &endless)
            .unwrap_err(),
    ] {
        assert_eq!(error.code, Code::WorkspaceRefused);
    }
}
