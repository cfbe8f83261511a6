//! Paths between Windows, WSL and Linux: no system is handed a path of another one, none climbs, and
//! a spelling is its own spelling.

use glovebox_workspace::adapter::{
    Adapted, Filler, PosixPath, Question, Roots, System, WindowsPath, WslMounts,
};

use super::{Target, as_it_is};

pub const TARGET: Target = Target {
    name: "adapter",
    run,
    seeds,
    mend: as_it_is,
    words: &[
        b"\\",
        b"\\\\",
        b"\\\\?\\",
        b"\\\\.\\",
        b"\\\\wsl$\\",
        b"\\\\wsl.localhost\\",
        b"UNC\\",
        b"C:",
        b"d:\\",
        b"/mnt/",
        b"/mnt/c",
        b"..",
        b"\\..\\",
        b"/../",
        b"NUL",
        b"COM1",
        b"aux.txt",
        b":ads",
        b"\n",
        b" ",
        b".",
        b"\t",
        b",",
        b"\"",
        b"\xc3\xa9",
        b"\xe2\x80\xae",
    ],
};

fn seeds() -> Vec<Vec<u8>> {
    [
        "C:\\work\\a\n/mnt/c/work/a\nC:\\work\\a",
        "\\\\?\\D:\\x\n/home/me/x\n/mnt/d/x",
        "\\\\wsl$\\Ubuntu\\home\\me\n/home/me\n\\\\wsl.localhost\\Ubuntu\\home",
        "\\\\server\\share\\x\n\n/mnt/e",
        "\n/srv/work\n",
        "D:/mixed\\slashes/..\n/mnt/d/./x//y\n",
    ]
    .map(|it| it.as_bytes().to_vec())
    .into()
}

/// Three lines: the root as Windows has it, the root as Linux has it, what `wslpath` answers.
fn run(bytes: &[u8]) -> Result<String, String> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().filter(|it| !it.is_empty()).map(str::to_owned);
    let (win, wsl, answer) = (line(), line(), line().unwrap_or_default());
    for text in [&win, &wsl].into_iter().flatten() {
        spelled(text);
    }
    let mounts = WslMounts::new("/mnt", Some("Ubuntu")).map_err(|error| error.to_string())?;
    let roots = Roots { win, wsl };
    let mut said = Vec::new();
    for system in [System::Windows, System::Wsl, System::Posix] {
        let mut wslpath = |_: &Question| Ok(answer.clone());
        for filler in [Filler::Wslpath(&mut wslpath), Filler::Rules(&mounts)] {
            match Adapted::new(system, &roots, &mounts, filler) {
                Ok(adapted) => {
                    own(system, &adapted);
                    said.push("taken".to_owned());
                }
                Err(error) => said.push(error.to_string()),
            }
        }
    }
    match said.iter().any(|it| it == "taken") {
        true => Ok(said.join("\n")),
        false => Err(said.join("\n")),
    }
}

fn spelled(text: &str) {
    if let Ok(path) = WindowsPath::parse(text) {
        for again in [path.to_string(), path.verbatim(), path.native()] {
            assert_eq!(WindowsPath::parse(&again), Ok(path.clone()), "{again}");
        }
    }
    if let Ok(path) = PosixPath::parse(text) {
        assert_eq!(PosixPath::parse(&path.to_string()), Ok(path));
    }
}

fn own(system: System, adapted: &Adapted) {
    let native = adapted.host_path_native();
    let mount = adapted
        .docker_mount_path()
        .unwrap_or_else(|_| native.clone());
    for path in [&native, &mount] {
        let between = if system == System::Windows { '\\' } else { '/' };
        assert!(!path.split(between).any(|name| name == ".."), "{path}");
        assert!(!path.chars().any(char::is_control), "{path:?}");
        assert_eq!(path.starts_with('/'), system != System::Windows, "{path}");
    }
}
