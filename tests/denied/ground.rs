//! A workspace with a secret under several names, and rules that deny it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use support::{Caller, Run, Trial, python};

pub(crate) const SECRET: &str = "a-key-that-is-not-to-be-read";
/// All of it by name, and all of it by what its names look like.
pub(crate) const LITERAL: &str = r#"["/workspace/work/.ssh/**", "/workspace/work/.env",
    "/workspace/work/dir/deep/x.pem", "/workspace/work/later"]"#;
pub(crate) const WILD: &str = r#"["**/*.pem", "**/.env", "**/.ssh/**", "**/late*"]"#;

pub(crate) struct Ground {
    pub(crate) trial: Trial,
}

impl Ground {
    /// `None` when the caller does not exist on this host.
    pub(crate) fn new(caller: Caller) -> Option<Self> {
        let ground = Self {
            trial: Trial::in_memory(caller)?,
        };
        let work = ground.work();
        fs::create_dir_all(work.join(".ssh")).unwrap();
        fs::create_dir_all(work.join("dir/deep")).unwrap();
        for name in [".ssh/id", ".env", "dir/deep/x.pem"] {
            fs::write(work.join(name), format!("{SECRET}\n")).unwrap();
        }
        fs::write(work.join("plain"), "plain\n").unwrap();
        symlink(".ssh", work.join("k")).unwrap();
        symlink("/workspace/work/.env", work.join("absolute")).unwrap();
        fs::hard_link(work.join(".ssh/id"), work.join("other-name")).unwrap();
        fs::hard_link(work.join("dir/deep/x.pem"), work.join("dir/pem-name")).unwrap();
        own(&ground, &work);
        Some(ground)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.trial.work()
    }

    /// With these paths denied; none at all is the control.
    pub(crate) fn run<'t>(&'t self, paths: &str, command: &[&str]) -> Run<'t> {
        let file = self.trial.home().join("glovebox.toml");
        let rule = match paths.is_empty() {
            true => String::new(),
            false => format!("[[rule]]\ndecision = \"deny\"\nname = \"keys\"\npath = {paths}\n"),
        };
        fs::write(&file, rule).unwrap();
        self.trial.run(command).outside("GLOVEBOX_CONFIG", file)
    }

    /// A module that Python takes for its own, and the run that imports it.
    pub(crate) fn imports<'t>(&'t self, paths: &str, code: &str) -> Run<'t> {
        self.trial.put("json.py", code);
        self.run(paths, &[python(), "-c", "import json"])
    }
}

fn own(ground: &Ground, path: &Path) {
    let account = ground.trial.caller().account().unwrap();
    std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid)).unwrap();
    if path.is_dir() && !path.is_symlink() {
        for entry in fs::read_dir(path).unwrap() {
            own(ground, &entry.unwrap().path());
        }
    }
}
