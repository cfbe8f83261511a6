//! A trial with a configuration, and its workspace's files as they can be compared.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::Value;
use support::{Caller, Trial};

pub(crate) struct Ground {
    pub(crate) trial: Trial,
}

/// What stands at each path: all that a user can see of it but its inode.
pub(crate) type Tree = BTreeMap<PathBuf, Facts>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    mode: u32,
    owner: (u32, u32),
    names: u64,
    /// Not of directories: an undo makes them anew.
    modified: Option<(i64, i64)>,
    contents: Vec<u8>,
    note: Option<Vec<u8>>,
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) killed: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ground {
    /// `None` when the caller does not exist on this host.
    pub(crate) fn new(caller: Caller, config: &str) -> Option<Self> {
        let ground = Self {
            trial: Trial::in_memory(caller)?,
        };
        fs::write(ground.config(), config).unwrap();
        Some(ground)
    }

    pub(crate) fn root(config: &str) -> Self {
        Self::new(Caller::Root, config).expect("root is always there")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.trial.home().join("glovebox.toml")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.trial.work()
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.trial.glovebox();
        command.arg("--config").arg(self.config()).args(words);
        command
    }

    pub(crate) fn glovebox(&self, words: &[&str]) -> Ended {
        Ended::of(self.command(words).output().unwrap())
    }

    /// What it printed, of a command that must end well.
    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        let all: Vec<&str> = ["--json"].iter().chain(words).copied().collect();
        let ended = self.glovebox(&all);
        ended.assert_code(0);
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.stdout))
    }

    /// A shell line in a sandbox; its record, however it ended.
    #[track_caller]
    pub(crate) fn run(&self, options: &[&str], line: &str) -> Value {
        let mut words = vec!["--json", "run", "--toolchain", "off"];
        words.extend(options);
        words.extend(["--", "/bin/sh", "-c", line]);
        let ended = self.glovebox(&words);
        serde_json::from_str(&ended.stdout)
            .unwrap_or_else(|_| panic!("no record: {}{}", ended.stdout, ended.stderr))
    }

    /// The next exec in the workspace, which changes nothing itself.
    #[track_caller]
    pub(crate) fn start(&self) -> Ended {
        let ended = self.glovebox(&["run", "--toolchain", "off", "--", "/bin/true"]);
        ended.assert_code(0);
        ended
    }

    pub(crate) fn tree(&self) -> Tree {
        tree(&self.work())
    }

    /// Files of every kind that a workspace may hold.
    pub(crate) fn plant(&self) {
        let work = self.work();
        for name in ["src/deep/er", "empty", "closed"] {
            fs::create_dir_all(work.join(name)).unwrap();
        }
        fs::write(work.join("src/main.py"), "print('hello')\n".repeat(50)).unwrap();
        fs::write(work.join("src/deep/er/data"), noise(1, 300_000)).unwrap();
        fs::write(work.join(".hidden"), "dots\n").unwrap();
        fs::write(work.join("nothing"), "").unwrap();
        fs::write(work.join("tool"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(work.join("tool"), fs::Permissions::from_mode(0o751)).unwrap();
        fs::set_permissions(work.join("empty"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::hard_link(work.join("tool"), work.join("src/same")).unwrap();
        symlink("src/main.py", work.join("to")).unwrap();
        symlink("/nowhere/at all", work.join("dangling")).unwrap();
        let odd: [&[u8]; 3] = [b"new\nline", b"not utf-8 \xff\xfe", b"-rf *"];
        for name in odd {
            fs::write(work.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
        }
        let sparse = fs::File::create(work.join("sparse")).unwrap();
        sparse.set_len(5 << 20).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&sparse, b"middle", 3 << 20).unwrap();
        setxattr(work.join("tool"), "user.note", b"kept", XattrFlags::empty()).unwrap();
        self.own_all();
    }

    /// Whoever calls owns all of it.
    fn own_all(&self) {
        let account = self.trial.caller().account().unwrap();
        for path in tree(&self.work()).keys() {
            let path = self.work().join(path);
            std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid)).unwrap();
        }
    }
}

impl Facts {
    /// Without what differs between two runs of the same line.
    pub(crate) fn brief(&self) -> String {
        format!(
            "{:o} {} {:?} {:?}",
            self.mode, self.names, self.note, self.contents
        )
    }
}

impl Ended {
    pub(crate) fn of(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self {
            code: output.status.code().unwrap_or(-1),
            killed: output.status.signal() == Some(9),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
    }

    /// A refusal with its code and the way out.
    #[track_caller]
    pub(crate) fn assert_refused(&self, code: &str) {
        assert_ne!(self.code, 0, "{}", self.stdout);
        let said = self.stderr.contains(&format!("error[{code}]: "));
        assert!(said && self.stderr.contains("\nhint: "), "{}", self.stderr);
    }
}

pub(crate) fn tree(top: &Path) -> Tree {
    let mut found = Tree::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let stat = fs::symlink_metadata(&path).unwrap();
        let mut contents = Vec::new();
        if stat.is_dir() {
            waiting.extend(fs::read_dir(&path).unwrap().map(|it| it.unwrap().path()));
        } else if stat.is_symlink() {
            contents = fs::read_link(&path)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
        } else if stat.is_file() {
            contents = fs::read(&path).unwrap();
        }
        let mut note = [0u8; 64];
        let note = match stat.is_symlink() {
            true => None,
            false => getxattr(&path, "user.note", &mut note)
                .ok()
                .map(|length| note[..length].to_vec()),
        };
        let facts = Facts {
            mode: stat.mode(),
            owner: (stat.uid(), stat.gid()),
            names: if stat.is_dir() { 1 } else { stat.nlink() },
            modified: stat.is_file().then(|| (stat.mtime(), stat.mtime_nsec())),
            contents,
            note,
        };
        if path != top {
            found.insert(path.strip_prefix(top).unwrap().to_owned(), facts);
        }
    }
    found
}

/// Says where two trees differ, and not everything that is in them.
#[track_caller]
pub(crate) fn assert_same(now: &Tree, then: &Tree, when: &str) {
    if now == then {
        return;
    }
    let brief = |facts: Option<&Facts>| {
        facts.map(|it| {
            let length = it.contents.len();
            (
                format!("{:o}", it.mode),
                it.owner,
                it.names,
                it.modified,
                length,
                it.note.clone(),
            )
        })
    };
    let paths: std::collections::BTreeSet<&PathBuf> = now.keys().chain(then.keys()).collect();
    let differ: Vec<String> = paths
        .into_iter()
        .filter(|path| now.get(*path) != then.get(*path))
        .map(|path| {
            format!(
                "{path:?}: {:?}, was {:?}",
                brief(now.get(path)),
                brief(then.get(path))
            )
        })
        .collect();
    panic!("{when}: {} differ\n{}", differ.len(), differ.join("\n"));
}

/// Bytes that do not compress, the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut dice = Dice::new(seed);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&dice.roll().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        (self.roll() >> 16) % most.max(1)
    }
}
