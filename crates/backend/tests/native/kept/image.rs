//! A root of its own, and a home that outlives the sandbox. Fresh sandboxes show them too.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use glovebox_backend::{Ending, Place, Spec, ToolchainLink};
use glovebox_model::{Code, Profile};
use glovebox_workspace::Dir;

use crate::house::{House, Rooms, Yard, order, profile, run, unbound};

fn with_image() -> Profile {
    let mut profile = profile();
    profile.image = Some("test".to_owned());
    profile
}

fn spec<'dir>(profile: &'dir Profile, image: Option<&'dir Dir>) -> Spec<'dir> {
    Spec {
        work: Place::Empty,
        inputs: Place::Empty,
        artifacts: Place::Empty,
        image,
        ..unbound(profile)
    }
}

/// A root with a shell that needs nothing else: the host's own busybox or shell with its libraries.
fn make_root(house: &House) -> std::path::PathBuf {
    let root = house.path().join("root");
    for name in ["usr/bin", "etc", "var/lib", "var/tmp", "tmp", "opt"] {
        std::fs::create_dir_all(root.join(name)).unwrap();
    }
    std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(root.join("etc/passwd"), "image:x:1000:1000::/:/bin/sh\n").unwrap();
    std::fs::write(root.join("opt/mark"), "of the image\n").unwrap();
    std::fs::write(root.join("var/lib/mark"), "kept\n").unwrap();
    std::fs::write(root.join("tmp/mark"), "never\n").unwrap();
    for program in ["sh", "cat", "ls", "true"] {
        copy_program(&root, Path::new("/usr/bin").join(program).as_path());
    }
    symlink("usr/bin", root.join("bin")).unwrap();
    root
}

fn copy_program(root: &Path, program: &Path) {
    let target = root.join("usr/bin").join(program.file_name().unwrap());
    std::fs::copy(program, &target).unwrap();
    let needs = std::process::Command::new("ldd")
        .arg(program)
        .output()
        .unwrap();
    for word in String::from_utf8(needs.stdout).unwrap().split_whitespace() {
        if word.starts_with('/') {
            let place = root.join(word.trim_start_matches('/'));
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::copy(word, place).unwrap();
        }
    }
}

pub(crate) fn programs_come_from_the_image_and_nothing_else_does() {
    let yard = Yard::new();
    let profile = with_image();
    let root = make_root(&yard.house);
    let image = Dir::open_trusted(&root).unwrap();
    let spec = spec(&profile, Some(&image));
    let prepared = yard.native().open(&spec, &yard.house.state()).unwrap();
    let line = "cat /etc/passwd /opt/mark /var/lib/mark; ls /tmp /var /home; ls /usr/bin
        echo x > /opt/x; echo y > /tmp/y; cat /tmp/y; [ -e /usr/bin/python3 ] && echo host";
    let told = run(prepared, &profile, &order(&["sh", "-c", line], &[]), None).unwrap();
    let expected = "image:x:1000:1000::/:/bin/sh\nof the image\nkept\n\
        /home:\nsandbox\n\n/tmp:\n\n/var:\nlib\ntmp\ncat\nls\nsh\ntrue\ny\n";
    assert_eq!(told.stdout, expected, "{}", told.stderr);
    assert!(told.stderr.contains("Read-only"), "{}", told.stderr);
    // Named by no profile, or named and not there.
    let plain = crate::house::profile();
    let unnamed = crate::kept::image::spec(&plain, Some(&image));
    let refused = yard.native().open(&unnamed, &yard.house.state());
    assert_eq!(refused.unwrap_err().code, Code::BackendUnavailable);
    let missing = crate::kept::image::spec(&profile, None);
    let refused = yard.native().open(&missing, &yard.house.state());
    assert_eq!(refused.unwrap_err().code, Code::BackendUnavailable);
}

/// Links at its top lead nowhere on the host, whatever they are called.
pub(crate) fn a_hostile_image_reaches_nothing() {
    let yard = Yard::new();
    let profile = with_image();
    let root = make_root(&yard.house);
    let outside = yard.house.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::set_permissions(&outside, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::write(outside.join("secret"), "secret\n").unwrap();
    std::fs::remove_dir_all(root.join("etc")).unwrap();
    std::fs::remove_dir_all(root.join("tmp")).unwrap();
    std::fs::remove_dir_all(root.join("var")).unwrap();
    for name in [
        "etc",
        "tmp",
        "var",
        "workspace",
        "home",
        "proc",
        "dev",
        "leak",
        "run",
    ] {
        symlink(&outside, root.join(name)).unwrap();
    }
    symlink("/proc/self/root", root.join("self")).unwrap();
    symlink("../../../../../..", root.join("up")).unwrap();
    let image = Dir::open_trusted(&root).unwrap();
    let mut spec = spec(&profile, Some(&image));
    let prepared = yard.native().open(&spec, &yard.house.state()).unwrap();
    let line = "cat /leak/secret /self/leak/secret /etc/secret; cat /up/leak/secret
        ls -d /up/usr; cat /etc/hostname; echo x > /tmp/x && cat /tmp/x";
    let told = run(prepared, &profile, &order(&["sh", "-c", line], &[]), None).unwrap();
    assert_eq!(told.stdout, "/up/usr\nsandbox\nx\n", "{}", told.stderr);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    // Its links would be in the way of the host's toolchains.
    spec.links.push(ToolchainLink {
        guest: "/leak/made".into(),
        target: "/usr".into(),
    });
    let refused = yard.native().open(&spec, &yard.house.state());
    assert_eq!(refused.unwrap_err().code, Code::InvalidArgument);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

pub(crate) fn a_home_that_outlives_it_is_written() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    for turn in ["first", "second"] {
        let spec = Spec {
            home: Some(&rooms.work),
            ..spec(&profile, None)
        };
        let prepared = yard.native().open(&spec, &yard.house.state()).unwrap();
        let line = format!("cat /home/sandbox/* 2> /dev/null; echo {turn} > /home/sandbox/{turn}");
        let told = run(prepared, &profile, &order(&["sh", "-c", &line], &[]), None).unwrap();
        assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
        let before = if turn == "first" { "" } else { "first\n" };
        assert_eq!(told.stdout, before);
    }
    let owner = rustix::fs::stat(rooms.path("work").join("second"))
        .unwrap()
        .st_uid;
    assert_eq!(owner, rustix::process::geteuid().as_raw());
}
