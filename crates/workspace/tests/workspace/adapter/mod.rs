//! Requirements 0.7 and 0.12 to 0.15: every shape of a path, on every system, as a row of a table;
//! and what must hold of all paths, of paths that nobody thought of.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod anything;
mod engine;

use glovebox_model::Code;
use glovebox_workspace::RelPath;
use glovebox_workspace::adapter::{
    Adapted, Facts, Filler, PathFault, PosixPath, Question, Roots, Runtime, System,
    WSLPATH_TIMEOUT, WindowsPath, WslMounts,
};

fn win(text: &str) -> Result<String, PathFault> {
    WindowsPath::parse(text).map(|path| path.to_string())
}

fn posix(text: &str) -> Result<String, PathFault> {
    PosixPath::parse(text).map(|path| path.to_string())
}

fn ubuntu() -> WslMounts {
    WslMounts::new("/mnt", Some("Ubuntu")).unwrap()
}

#[test]
fn a_path_of_windows_has_one_spelling() {
    for (text, spelled) in [
        (r"D:\work", r"D:\work"),
        (r"d:\work", r"D:\work"),
        ("d:/work/a", r"D:\work\a"),
        (r"D:\work\", r"D:\work"),
        (r"D:\\work\\\a", r"D:\work\a"),
        (r"D:\.\work\.", r"D:\work"),
        (r"D:\", r"D:\"),
        (r"D:\a b\ c", r"D:\a b\ c"),
        (r"D:\工作\naïve", r"D:\工作\naïve"),
        (r"D:\.git\..x\x..y", r"D:\.git\..x\x..y"),
        (r"D:\a,b'$(x)`%USERPROFILE%", r"D:\a,b'$(x)`%USERPROFILE%"),
        (r"\\?\D:\work", r"D:\work"),
        (r"\\?\d:\work\", r"D:\work"),
        (r"\\?\UNC\srv\share\x", r"\\srv\share\x"),
        (r"\\?\unc\srv\share", r"\\srv\share"),
        (r"\\srv\share", r"\\srv\share"),
        (r"\\srv\share\a\b\", r"\\srv\share\a\b"),
        ("//srv/share/a", r"\\srv\share\a"),
        (r"\\wsl$\Ubuntu\home\me", r"\\wsl.localhost\Ubuntu\home\me"),
        (r"\\WSL$\Ubuntu\home\me", r"\\wsl.localhost\Ubuntu\home\me"),
        (
            r"\\wsl.localhost\Ubuntu-22.04\home",
            r"\\wsl.localhost\Ubuntu-22.04\home",
        ),
        ("//wsl$/Ubuntu/home", r"\\wsl.localhost\Ubuntu\home"),
        (
            r"\\?\UNC\wsl.localhost\Ubuntu\home",
            r"\\wsl.localhost\Ubuntu\home",
        ),
        (r"D:\COM10\LPTx\nulx\aux1", r"D:\COM10\LPTx\nulx\aux1"),
    ] {
        assert_eq!(win(text).as_deref(), Ok(spelled), "{text}");
    }
}

#[test]
fn what_is_no_plain_path_of_windows_is_refused() {
    let long = format!(r"D:\{}", "x".repeat(256));
    let far = format!(r"D:\{}", vec!["x".repeat(200); 170].join(r"\"));
    for (text, fault) in [
        ("", PathFault::Empty),
        ("work", PathFault::NotAbsolute),
        (r"work\x", PathFault::NotAbsolute),
        ("D:", PathFault::NotAbsolute),
        ("D:work", PathFault::NotAbsolute),
        (r"1:\work", PathFault::NotAbsolute),
        (r"é:\work", PathFault::NotAbsolute),
        (r"DD:\work", PathFault::NotAbsolute),
        (r"\work", PathFault::PosixOnWindows),
        ("/mnt/d/work", PathFault::PosixOnWindows),
        ("/d/work", PathFault::PosixOnWindows),
        ("/home/me", PathFault::PosixOnWindows),
        ("/", PathFault::PosixOnWindows),
        (r"D:\..\x", PathFault::Traversal),
        (r"D:\a\..", PathFault::Traversal),
        ("D:/a/../../b", PathFault::Traversal),
        (r"\\srv\share\..\x", PathFault::Traversal),
        (r"\\srv\..\x", PathFault::Traversal),
        (r"\\?\D:\a\..\b", PathFault::Traversal),
        (r"\\.\PhysicalDrive0", PathFault::Device),
        (r"\\.\D:\work", PathFault::Device),
        ("//./pipe/docker_engine", PathFault::Device),
        ("//?/D:/work", PathFault::Device),
        (r"\??\D:\work", PathFault::Device),
        (
            r"\\?\Volume{b75e2c83-0000-0000-0000-602f00000000}\x",
            PathFault::Device,
        ),
        (r"\\?\GLOBALROOT\Device\x", PathFault::Device),
        (r"\\?\D:/work", PathFault::Verbatim),
        (r"\\?\D:\a\.\b", PathFault::Verbatim),
        (r"\\?\D:\a\\b", PathFault::Verbatim),
        (r"\\?\", PathFault::Verbatim),
        (r"\\srv", PathFault::NoShare),
        (r"\\srv\", PathFault::NoShare),
        (r"\\", PathFault::NoShare),
        (r"\\\share\x", PathFault::NoShare),
        (r"\\wsl$", PathFault::NoShare),
        (r"D:\a:b", PathFault::Character),
        (r"D:\file::$DATA", PathFault::Character),
        (r"D:\a*", PathFault::Character),
        (r#"D:\a"b"#, PathFault::Character),
        (r"D:\a<b>", PathFault::Character),
        (r"D:\a|b", PathFault::Character),
        ("D:\\a\u{f03a}b", PathFault::Character),
        ("D:\\a\nb", PathFault::Control),
        ("D:\\a\0b", PathFault::Control),
        ("D:\\a\u{85}b", PathFault::Control),
        (r"D:\a.", PathFault::TrailingDotOrSpace),
        (r"D:\a \b", PathFault::TrailingDotOrSpace),
        (r"D:\...", PathFault::TrailingDotOrSpace),
        (r"D:\. .\x", PathFault::TrailingDotOrSpace),
        (r"D:\.. \x", PathFault::TrailingDotOrSpace),
        (r"D:\CON", PathFault::ReservedName),
        (r"D:\nul\x", PathFault::ReservedName),
        (r"D:\Aux.txt", PathFault::ReservedName),
        (r"D:\prn .tar.gz", PathFault::ReservedName),
        (r"D:\com1", PathFault::ReservedName),
        (r"D:\LPT9.log", PathFault::ReservedName),
        (r"D:\COM¹", PathFault::ReservedName),
        (r"D:\conin$", PathFault::ReservedName),
        (long.as_str(), PathFault::NameTooLong),
        (far.as_str(), PathFault::PathTooLong),
    ] {
        assert_eq!(win(text), Err(fault), "{text}");
    }
}

#[test]
fn a_path_of_linux_has_one_spelling() {
    for (text, spelled) in [
        ("/srv/work", "/srv/work"),
        ("/srv/work/", "/srv/work"),
        ("/srv//work/./a", "/srv/work/a"),
        ("/", "/"),
        ("/mnt/d/work", "/mnt/d/work"),
        ("/a b/ c /工作", "/a b/ c /工作"),
        ("/a:b/c,d\"e", "/a:b/c,d\"e"),
        ("/home/a\\b/nul/x.", "/home/a\\b/nul/x."),
        ("/D:/x", "/D:/x"),
    ] {
        assert_eq!(posix(text).as_deref(), Ok(spelled), "{text}");
    }
    let long = format!("/{}", "x".repeat(256));
    let far = "/x".repeat(3000);
    for (text, fault) in [
        ("", PathFault::Empty),
        ("srv", PathFault::NotAbsolute),
        ("./srv", PathFault::NotAbsolute),
        ("~/work", PathFault::NotAbsolute),
        (r"D:\work", PathFault::WindowsOnPosix),
        ("d:/work", PathFault::WindowsOnPosix),
        ("D:", PathFault::WindowsOnPosix),
        (r"\\wsl$\Ubuntu\home", PathFault::WindowsOnPosix),
        (r"\work", PathFault::WindowsOnPosix),
        ("//srv/share", PathFault::WindowsOnPosix),
        ("/srv/../etc", PathFault::Traversal),
        ("/..", PathFault::Traversal),
        ("/a\nb", PathFault::Control),
        ("/a\0b", PathFault::Control),
        (long.as_str(), PathFault::NameTooLong),
        (far.as_str(), PathFault::PathTooLong),
    ] {
        assert_eq!(posix(text), Err(fault), "{text}");
    }
}

#[test]
fn the_same_directory_has_a_path_on_either_side() {
    let elsewhere = WslMounts::new("/windows/", Some("Ubuntu")).unwrap();
    let at_root = WslMounts::new("/", Some("Ubuntu")).unwrap();
    for (mounts, windows, linux) in [
        (&ubuntu(), r"D:\work", "/mnt/d/work"),
        (&ubuntu(), r"D:\", "/mnt/d"),
        (
            &ubuntu(),
            r"C:\Users\My Name\工作",
            "/mnt/c/Users/My Name/工作",
        ),
        (&elsewhere, r"D:\work", "/windows/d/work"),
        (&at_root, r"D:\work", "/d/work"),
        (&ubuntu(), r"\\wsl.localhost\Ubuntu\home\me", "/home/me"),
        (&ubuntu(), r"\\wsl.localhost\Ubuntu", "/"),
        (&ubuntu(), r"\\wsl.localhost\Ubuntu\mnt", "/mnt"),
        (&ubuntu(), r"\\wsl.localhost\Ubuntu\mnt\wsl\x", "/mnt/wsl/x"),
        (&ubuntu(), r"\\wsl.localhost\Ubuntu\mnt2\d", "/mnt2/d"),
        // There the drives are elsewhere, so this is a directory like any other.
        (&elsewhere, r"\\wsl.localhost\Ubuntu\mnt\d\x", "/mnt/d/x"),
        (&at_root, r"\\wsl.localhost\Ubuntu\home\me", "/home/me"),
    ] {
        let there = mounts.to_posix(&WindowsPath::parse(windows).unwrap());
        assert_eq!(there.unwrap().to_string(), linux);
        let back = mounts.to_windows(&PosixPath::parse(linux).unwrap());
        assert_eq!(back.unwrap().to_string(), windows);
    }
    // Another name of a drive's directory: the way back leads to the drive.
    let alias = WindowsPath::parse(r"\\wsl$\ubuntu\mnt\d\x").unwrap();
    let there = ubuntu().to_posix(&alias).unwrap();
    assert_eq!(there.to_string(), "/mnt/d/x");
    assert_eq!(ubuntu().to_windows(&there).unwrap().to_string(), r"D:\x");
}

#[test]
fn what_has_no_path_on_the_other_side_is_refused() {
    let unknown = WslMounts::default();
    for (mounts, windows, fault) in [
        (&ubuntu(), r"\\srv\share\x", PathFault::NetworkShare),
        (&ubuntu(), r"\\wsl$\Debian\home", PathFault::OtherDistro),
        (&unknown, r"\\wsl$\Ubuntu\home", PathFault::DistroUnknown),
    ] {
        let there = mounts.to_posix(&WindowsPath::parse(windows).unwrap());
        assert_eq!(there, Err(fault), "{windows}");
    }
    for (mounts, linux, fault) in [
        (&unknown, "/home/me", PathFault::DistroUnknown),
        (&ubuntu(), "/mnt/D/work", PathFault::UpperCaseDrive),
        (&ubuntu(), "/mnt/d/aux", PathFault::ReservedName),
        (&ubuntu(), "/mnt/d/x.", PathFault::TrailingDotOrSpace),
        (&ubuntu(), "/home/me/a:b", PathFault::Character),
        (&ubuntu(), "/home/me/a\\b", PathFault::Character),
    ] {
        let back = mounts.to_windows(&PosixPath::parse(linux).unwrap());
        assert_eq!(back, Err(fault), "{linux}");
    }
    assert!(WslMounts::new(r"D:\mnt", None).is_err());
    assert!(WslMounts::new("mnt", None).is_err());
    for distro in ["", "..", r"a\b", "a/b", "x:y"] {
        assert!(WslMounts::new("/mnt", Some(distro)).is_err(), "{distro}");
    }
}

#[test]
fn the_system_is_told_from_what_it_says_of_itself() {
    const WSL2: &str = "Linux version 5.15.167.4-microsoft-standard-WSL2 (root@f9c826d3017f)";
    const WSL1: &str = "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com)";
    const DEBIAN: &str = "Linux version 6.1.0-21-amd64 (debian-kernel@lists.debian.org)";
    for (os, proc_version, osrelease, system) in [
        ("windows", "", "", System::Windows),
        ("nt", "", "", System::Windows),
        ("Windows", WSL2, "", System::Windows),
        (
            "linux",
            WSL2,
            "5.15.167.4-microsoft-standard-WSL2",
            System::Wsl,
        ),
        ("linux", WSL1, "4.4.0-19041-Microsoft", System::Wsl),
        (
            "linux",
            "",
            "5.15.167.4-microsoft-standard-WSL2",
            System::Wsl,
        ),
        ("linux", WSL2, "", System::Wsl),
        ("posix", WSL2, "", System::Wsl),
        ("linux", DEBIAN, "6.1.0-21-amd64", System::Posix),
        ("linux", "", "6.8.0-1021-azure", System::Posix),
        ("macos", "", "", System::Posix),
        ("", "", "", System::Posix),
    ] {
        let facts = Facts {
            os,
            proc_version,
            osrelease,
        };
        assert_eq!(System::detect(facts), system, "{facts:?}");
        assert_eq!(Runtime::Auto.on(facts).unwrap(), system, "{facts:?}");
    }
}

#[test]
fn a_mode_that_cannot_be_is_refused() {
    let facts = |os| Facts {
        os,
        ..Facts::default()
    };
    for (mode, os, system) in [
        (Runtime::Windows, "windows", Some(System::Windows)),
        (Runtime::Windows, "linux", None),
        (Runtime::Wsl, "windows", None),
        // A kernel of one's own need not say that it is one of Microsoft's.
        (Runtime::Wsl, "linux", Some(System::Wsl)),
        (Runtime::Posix, "linux", Some(System::Posix)),
        (Runtime::Posix, "nt", None),
    ] {
        match (mode.on(facts(os)), system) {
            (Ok(found), Some(system)) => assert_eq!(found, system),
            (Err(error), None) => {
                assert_eq!(error.code, Code::InvalidConfig);
                assert!(!error.hints.is_empty());
            }
            (found, _) => panic!("{mode:?} on {os}: {found:?}"),
        }
    }
}

fn roots(win: Option<&str>, wsl: Option<&str>) -> Roots {
    Roots {
        win: win.map(str::to_owned),
        wsl: wsl.map(str::to_owned),
    }
}

#[test]
fn each_system_gets_its_own_root_and_translates_what_is_missing() {
    let long = format!(r"D:\{}", vec!["x".repeat(100); 3].join(r"\"));
    let long_native = format!(r"\\?\{long}");
    // system, win, wsl, native, mount
    for (system, win, wsl, native, mount) in [
        (
            System::Windows,
            Some(r"d:\work"),
            Some("/home/me/work"),
            r"D:\work",
            r"D:\work",
        ),
        (
            System::Windows,
            None,
            Some("/mnt/d/work"),
            r"D:\work",
            r"D:\work",
        ),
        (
            System::Windows,
            Some(""),
            Some("/mnt/d/work"),
            r"D:\work",
            r"D:\work",
        ),
        (
            System::Windows,
            None,
            Some("/home/me/work"),
            r"\\wsl.localhost\Ubuntu\home\me\work",
            r"\\wsl.localhost\Ubuntu\home\me\work",
        ),
        (
            System::Windows,
            Some(long.as_str()),
            None,
            long_native.as_str(),
            long.as_str(),
        ),
        (
            System::Wsl,
            Some(r"D:\work"),
            Some("/home/me/work"),
            "/home/me/work",
            "/home/me/work",
        ),
        (
            System::Wsl,
            Some(r"D:\my work"),
            None,
            "/mnt/d/my work",
            "/mnt/d/my work",
        ),
        (
            System::Wsl,
            Some(r"\\wsl$\Ubuntu\srv\w"),
            None,
            "/srv/w",
            "/srv/w",
        ),
        (System::Posix, None, Some("/srv/w"), "/srv/w", "/srv/w"),
        (
            System::Posix,
            Some(r"D:\work"),
            Some("/srv/w"),
            "/srv/w",
            "/srv/w",
        ),
        (
            System::Posix,
            None,
            Some("/mnt/D/x."),
            "/mnt/D/x.",
            "/mnt/D/x.",
        ),
    ] {
        let mounts = ubuntu();
        let adapted = Adapted::new(system, &roots(win, wsl), &mounts, Filler::Rules(&mounts));
        let adapted = adapted.unwrap();
        assert_eq!(adapted.host_path_native(), native);
        assert_eq!(adapted.docker_mount_path().unwrap(), mount);
    }
}

#[test]
fn a_root_of_the_wrong_kind_names_its_setting_and_the_way_out() {
    let (win_key, wsl_key) = ("`root_win`", "`root_wsl`");
    for (system, win, wsl, key) in [
        (System::Windows, Some("/mnt/d/work"), None, win_key),
        (
            System::Windows,
            Some("/mnt/d/work"),
            Some("/mnt/d/work"),
            win_key,
        ),
        (System::Windows, None, Some(r"D:\work"), wsl_key),
        (System::Windows, None, None, win_key),
        (System::Windows, None, Some("/mnt/d/aux"), win_key),
        (System::Wsl, None, Some(r"D:\work"), wsl_key),
        (System::Wsl, Some("/mnt/d/work"), None, win_key),
        (System::Wsl, None, None, wsl_key),
        (System::Wsl, Some(r"\\srv\share\x"), None, wsl_key),
        (System::Wsl, None, Some("/mnt/d/nul"), wsl_key),
        (System::Wsl, None, Some("/mnt/D/work"), wsl_key),
        (System::Posix, Some(r"D:\work"), None, wsl_key),
        (System::Posix, None, Some(r"D:\work"), wsl_key),
        (System::Posix, None, Some("/srv/../etc"), wsl_key),
        (System::Posix, None, Some("/"), "/"),
        (System::Windows, Some(r"D:\"), None, r"D:"),
    ] {
        let mounts = ubuntu();
        let given = roots(win, wsl);
        let error = Adapted::new(system, &given, &mounts, Filler::Rules(&mounts)).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig, "{given:?}");
        assert!(error.message.contains(key), "{given:?}: {}", error.message);
        assert!(!error.hints.is_empty(), "{given:?}");
    }
}

#[test]
fn a_share_of_the_network_is_opened_and_not_mounted() {
    let mounts = ubuntu();
    let given = roots(Some(r"\\srv\share\work"), None);
    let adapted = Adapted::new(System::Windows, &given, &mounts, Filler::Rules(&mounts)).unwrap();
    assert_eq!(adapted.host_path_native(), r"\\srv\share\work");
    let error = adapted.docker_mount_path().unwrap_err();
    assert_eq!(error.code, Code::InvalidConfig);
}

/// Asks `wslpath`, which is the test.
fn ask(
    system: System,
    given: &Roots,
    answer: Result<&str, &str>,
) -> (glovebox_model::Result<Adapted>, Vec<Question>) {
    let mut asked = Vec::new();
    let mut wslpath = |question: &Question| {
        asked.push(question.clone());
        answer.map(str::to_owned).map_err(str::to_owned)
    };
    let adapted = Adapted::new(system, given, &ubuntu(), Filler::Wslpath(&mut wslpath));
    (adapted, asked)
}

#[test]
fn wslpath_is_asked_for_a_missing_root_alone_and_not_believed() {
    assert_eq!(WSLPATH_TIMEOUT.as_secs(), 5);
    let (adapted, asked) = ask(System::Windows, &roots(Some(r"D:\w"), Some("/x")), Ok("no"));
    assert_eq!(adapted.unwrap().host_path_native(), r"D:\w");
    assert_eq!(asked, []);

    let missing_win = roots(None, Some("/drives/d/$(w)"));
    let (adapted, asked) = ask(System::Windows, &missing_win, Ok("D:\\w\r\n"));
    assert_eq!(adapted.unwrap().host_path_native(), r"D:\w");
    assert_eq!(
        asked[0].command(),
        ["wsl.exe", "--exec", "wslpath", "-w", "/drives/d/$(w)"]
    );

    let missing_wsl = roots(Some(r"d:\w"), None);
    let (adapted, asked) = ask(System::Wsl, &missing_wsl, Ok("/drives/d/w\n"));
    assert_eq!(adapted.unwrap().host_path_native(), "/drives/d/w");
    assert_eq!(asked[0].command(), ["wslpath", "-u", r"D:\w"]);

    for (system, given, answer) in [
        (System::Windows, &missing_win, "/mnt/d/w"),
        (System::Windows, &missing_win, ""),
        (System::Windows, &missing_win, "D:\\w\nD:\\x\n"),
        (System::Windows, &missing_win, "wslpath: no such file"),
        (System::Windows, &missing_win, r"D:\w\..\x"),
        (System::Wsl, &missing_wsl, r"D:\w"),
        (System::Wsl, &missing_wsl, "w"),
        (System::Wsl, &missing_wsl, "/"),
    ] {
        let error = ask(system, given, Ok(answer)).0.unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig, "{answer}");
        assert!(!error.hints.is_empty(), "{answer}");
    }
    let (refused, _) = ask(System::Wsl, &missing_wsl, Err("no answer in 5 s"));
    let error = refused.unwrap_err();
    assert!(error.message.contains("`root_wsl`"));
    assert!(
        error
            .causes
            .iter()
            .any(|it| it.contains("no answer in 5 s"))
    );
    assert!(
        error
            .hints
            .iter()
            .any(|it| it.contains("`root_wsl` under `[workspace]`"))
    );
}

#[test]
fn directories_below_a_root_follow_its_rules() {
    let mounts = ubuntu();
    let adapted = |system| {
        let given = roots(Some(r"D:\w"), Some("/srv/w"));
        Adapted::new(system, &given, &mounts, Filler::Rules(&mounts)).unwrap()
    };
    let rel = |path: &str| RelPath::new(path).unwrap();
    let below = adapted(System::Windows).below(&rel("projects/demo/work"));
    assert_eq!(
        below.unwrap().host_path_native(),
        r"D:\w\projects\demo\work"
    );
    let below = adapted(System::Wsl).below(&rel("projects/nul/work"));
    assert_eq!(
        below.unwrap().host_path_native(),
        "/srv/w/projects/nul/work"
    );
    for (system, path) in [
        (System::Windows, "projects/nul"),
        (System::Windows, "a\\..\\..\\b"),
        (System::Windows, "a:b"),
        (System::Windows, "a/../b"),
        (System::Wsl, "a/../b"),
        (System::Wsl, "a\nb"),
    ] {
        let error = adapted(system).below(&rel(path)).unwrap_err();
        assert_eq!(error.code, Code::InvalidConfig, "{path}");
    }
    let odd = RelPath::new(b"a\xff").unwrap();
    assert!(adapted(System::Wsl).below(&odd).is_err());
}
