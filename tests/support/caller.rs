//! Who runs Glovebox: root, or an ordinary user made for these tests.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The user that `scripts/test` makes.
const NAME: &str = "glovebox-test";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    Root,
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
}

impl Caller {
    /// `None` when this host has no such account; in CI that is a failure, elsewhere it is said.
    ///
    /// # Panics
    /// In CI without the account, and anywhere without root.
    pub fn account(self) -> Option<Account> {
        assert!(
            rustix::process::geteuid().is_root(),
            "these tests run as root"
        );
        match self {
            Self::Root => Some(Account { uid: 0, gid: 0 }),
            Self::User => {
                let found = ordinary();
                if found.is_none() {
                    let said = format!("no user `{NAME}` here (`useradd {NAME}` makes one)");
                    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
                    assert!(!in_ci, "{said}");
                    eprintln!("SKIPPED: {said}");
                }
                found
            }
        }
    }

    pub(crate) fn own(self, path: &Path) {
        if let (Self::User, Some(account)) = (self, ordinary()) {
            chown(path, Some(account.uid), Some(account.gid)).expect("give the directory away");
        }
    }

    /// Runs the command as this caller, without root's groups or home.
    pub(crate) fn dress(self, command: &mut Command) {
        if let (Self::User, Some(account)) = (self, ordinary()) {
            command.uid(account.uid).gid(account.gid);
            command.env("HOME", format!("/home/{NAME}"));
        }
    }
}

fn ordinary() -> Option<Account> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let line = users
        .lines()
        .find(|line| line.split(':').next() == Some(NAME))?;
    let mut fields = line.split(':').skip(2);
    Some(Account {
        uid: fields.next()?.parse().ok()?,
        gid: fields.next()?.parse().ok()?,
    })
}
