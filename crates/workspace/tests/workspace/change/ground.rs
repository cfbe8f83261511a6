//! A workspace and an overlay of it, which lives for one line of shell.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_workspace::Dir;
use glovebox_workspace::change::{Changes, EntryChange, Held, Outcome, ReadLimits};
use sha2::Digest;

pub(crate) struct Ground {
    root: tempfile::TempDir,
    work: tempfile::TempDir,
    pub(crate) lower: Dir,
    pub(crate) shelf: Dir,
}

/// Everything about a tree that a change can change, from inside or from outside.
const LIST: &str = r#"import os, hashlib
def say(path):
    facts = os.lstat(path)
    kind = facts.st_mode & 0o170000
    if kind == 0o120000:
        print(ascii(path), 'link', ascii(os.readlink(path)))
        return
    own = [x for x in os.listxattr(path) if not x.startswith('user.overlay.')]
    marks = [(x, os.getxattr(path, x)) for x in sorted(own) if x.startswith('user.')]
    if kind == 0o040000:
        print(ascii(path), 'directory', oct(facts.st_mode), marks)
    elif kind == 0o100000:
        digest = hashlib.sha256(open(path, 'rb').read()).hexdigest()[:16]
        print(ascii(path), oct(facts.st_mode), facts.st_size, facts.st_mtime_ns, digest, marks)
for top, dirs, files in os.walk('.'):
    dirs.sort()
    for name in sorted(dirs + files):
        say(os.path.join(top, name))
"#;

impl Ground {
    pub(crate) fn new() -> Self {
        Self::with(tempfile::tempdir().unwrap())
    }

    /// The workspace on another file system than everything of ours.
    pub(crate) fn apart() -> Self {
        Self::with(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn with(work: tempfile::TempDir) -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["held", "mount"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        std::fs::create_dir(work.path().join("work")).unwrap();
        Self {
            lower: Dir::open_trusted(&work.path().join("work")).unwrap(),
            shelf: Dir::open_trusted(&root.path().join("held")).unwrap(),
            root,
            work,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match name == "work" || name.starts_with("work/") {
            true => self.work.path().join(name),
            false => self.root.path().join(name),
        }
    }

    pub(crate) fn hold(&self) -> Held {
        Held::create(&self.shelf, "one", &self.lower).unwrap()
    }

    /// In the workspace, without a layer.
    pub(crate) fn sh(&self, line: &str) -> String {
        self.command(Command::new("bash").arg("-ec").arg(line))
    }

    /// In the workspace under a layer. Who runs it is root there, and may do what no program in a
    /// sandbox can.
    pub(crate) fn layered(&self, held: &Held, line: &str) -> String {
        held.begin().unwrap();
        let root = self.root.path().display();
        let work = self.path("work");
        let work = work.display();
        let line = format!(
            "mount -t overlay x -o lowerdir={work},upperdir={root}/held/one/layer/upper,\
             workdir={root}/held/one/layer/work,userxattr {root}/mount\ncd {root}/mount\n{line}"
        );
        let unshare = ["-Urm", "--propagation", "private", "bash", "-ec"];
        self.command(Command::new("unshare").args(unshare).arg(line))
    }

    fn command(&self, command: &mut Command) -> String {
        let done = command.current_dir(self.path("work")).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(done.stdout), text(done.stderr));
        assert!(done.status.success(), "{stdout}\n{stderr}");
        stdout
    }

    /// What the workspace holds, in the same words.
    pub(crate) fn list(&self) -> String {
        let top = self.path("work");
        let mut lines = Vec::new();
        let mut waiting = vec![top.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let facts = path.symlink_metadata().unwrap();
                let name = path.strip_prefix(&top).unwrap().display();
                let mode = facts.permissions().mode();
                lines.push(if facts.is_symlink() {
                    format!("'./{name}' link '{}'", path.read_link().unwrap().display())
                } else if facts.is_dir() {
                    waiting.push(path.clone());
                    format!("'./{name}' directory 0o{mode:o} [{}]", attributes(&path))
                } else {
                    let digest = sha2::Sha256::digest(std::fs::read(&path).unwrap());
                    let digest: String = digest[..8].iter().map(|it| format!("{it:02x}")).collect();
                    let time = facts.mtime() * 1_000_000_000 + facts.mtime_nsec();
                    let size = facts.len();
                    format!(
                        "'./{name}' 0o{mode:o} {size} {time} {digest} [{}]",
                        attributes(&path)
                    )
                });
            }
        }
        sorted(&lines.join("\n"))
    }

    /// Runs a line on a layer and says what the program had before it at the end.
    pub(crate) fn changed_by(&self, held: &Held, line: &str) -> String {
        let list = format!("{line}\npython3 -c \"$LIST\"");
        sorted(&self.layered(held, &format!("LIST=$(cat <<'END'\n{LIST}\nEND\n)\n{list}")))
    }

    pub(crate) fn changes(&self, held: &Held) -> Changes {
        held.changes(&self.lower, ReadLimits::default()).unwrap()
    }

    pub(crate) fn keep(&self, held: &Held) -> Outcome {
        held.keep(&self.lower, ReadLimits::default()).unwrap()
    }
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

fn attributes(path: &Path) -> String {
    let mut names = [0u8; 4096];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap();
    let names = String::from_utf8(names[..length].to_vec()).unwrap();
    let mut names: Vec<&str> = names.split_terminator('\0').collect();
    names.sort_unstable();
    let shown = names.iter().map(|name| {
        let mut value = [0u8; 4096];
        let length = rustix::fs::getxattr(path, *name, &mut value[..]).unwrap();
        let value = String::from_utf8_lossy(&value[..length]).into_owned();
        format!("('{name}', b'{value}')")
    });
    shown.collect::<Vec<_>>().join(", ")
}

pub(crate) fn told(changes: &Changes) -> Vec<(String, EntryChange)> {
    let mut all: Vec<(String, EntryChange)> = changes
        .entries
        .iter()
        .map(|it| (it.path.display(), it.what))
        .collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

pub(crate) fn list_of(expected: &[(&str, EntryChange)]) -> Vec<(String, EntryChange)> {
    let own = |(path, what): &(&str, EntryChange)| ((*path).to_owned(), *what);
    expected.iter().map(own).collect()
}

pub(crate) fn applied(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
}

pub(crate) fn conflict(outcome: &Outcome) -> Vec<String> {
    match outcome {
        Outcome::Conflict { paths } => paths.iter().map(|it| it.display()).collect(),
        Outcome::Applied(_) => Vec::new(),
    }
}
