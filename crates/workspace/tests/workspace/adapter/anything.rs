//! What must hold of every path, told by paths that were made up.

use glovebox_workspace::adapter::{
    Adapted, Filler, PosixPath, Question, System, WindowsPath, WslMounts,
};
use proptest::prelude::*;

use crate::adapter::roots;

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9 ._-]{1,12}", "\\PC{1,8}", Just("mnt".to_owned())]
}

fn mounts() -> impl Strategy<Value = WslMounts> {
    prop_oneof![Just("/mnt"), Just("/"), Just("/win/drives")]
        .prop_map(|root| WslMounts::new(root, Some("Ubuntu")).unwrap())
}

/// Anything that looks a little like a path.
fn anything() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just(r"\\?\".to_owned()),
        Just(r"\\".to_owned()),
        Just(r"\\.\".to_owned()),
        Just(r"\\wsl$\Ubuntu".to_owned()),
        Just("D:".to_owned()),
        Just("/mnt/d".to_owned()),
        Just("/".to_owned()),
        Just(r"\".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("NUL".to_owned()),
        Just("UNC".to_owned()),
        "\\PC{0,4}",
        ".{0,3}",
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn from_windows_to_wsl_and_back_is_the_same(
        drive in "[a-zA-Z]",
        names in proptest::collection::vec(name(), 0..6),
        mounts in mounts(),
    ) {
        let text = format!(r"{drive}:\{}", names.join(r"\"));
        if let Ok(path) = WindowsPath::parse(&text) {
            let there = mounts.to_posix(&path).unwrap();
            prop_assert!(there.to_string().starts_with('/'));
            prop_assert_eq!(mounts.to_windows(&there).unwrap(), path);
        }
    }

    #[test]
    fn from_wsl_to_windows_and_back_is_the_same(
        names in proptest::collection::vec(name(), 0..6),
        mounts in mounts(),
    ) {
        let path = PosixPath::parse(&format!("/{}", names.join("/")));
        if let Ok(path) = path && let Ok(there) = mounts.to_windows(&path) {
            prop_assert_eq!(mounts.to_posix(&there).unwrap(), path);
        }
    }

    #[test]
    fn a_spelling_is_its_own_spelling(text in anything()) {
        if let Ok(path) = WindowsPath::parse(&text) {
            prop_assert_eq!(WindowsPath::parse(&path.to_string()), Ok(path.clone()));
            prop_assert_eq!(WindowsPath::parse(&path.verbatim()), Ok(path.clone()));
            prop_assert_eq!(WindowsPath::parse(&path.native()), Ok(path));
        }
        if let Ok(path) = PosixPath::parse(&text) {
            prop_assert_eq!(PosixPath::parse(&path.to_string()), Ok(path));
        }
    }

    #[test]
    fn no_system_gets_a_path_of_the_other(
        win in proptest::option::of(anything()),
        wsl in proptest::option::of(anything()),
        answer in anything(),
        mounts in mounts(),
        asking in any::<bool>(),
    ) {
        let given = roots(win.as_deref(), wsl.as_deref());
        for system in [System::Windows, System::Wsl, System::Posix] {
            let mut wslpath = |_: &Question| Ok(answer.clone());
            let filler = match asking {
                true => Filler::Wslpath(&mut wslpath),
                false => Filler::Rules(&mounts),
            };
            let Ok(adapted) = Adapted::new(system, &given, &mounts, filler) else {
                continue;
            };
            let native = adapted.host_path_native();
            let mount = adapted.docker_mount_path().unwrap_or_else(|_| native.clone());
            for path in [&native, &mount] {
                // A backslash is a character like any other in a name of Linux.
                let between = if system == System::Windows { '\\' } else { '/' };
                let up = path.split(between).any(|name| name == "..");
                prop_assert!(!up && !path.chars().any(char::is_control), "{path}");
                let of_linux = path.starts_with('/');
                prop_assert_eq!(of_linux, system != System::Windows, "{}", path);
                if system == System::Windows {
                    prop_assert!(!path.contains('/'), "{path}");
                }
            }
            prop_assert!(!mount.starts_with(r"\\?\"), "{mount}");
        }
    }
}
