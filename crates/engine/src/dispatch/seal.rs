//! A call that waits must survive a restart, and it may hold private values in its environment and
//! inputs: it is kept encrypted, under a key that is not in the database, and only until it starts.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use glovebox_model::{Call, Code, Error, ExecId, Result, SpaceId, Stage};
use serde::{Deserialize, Serialize};

const NONCE: usize = 24;
const KEY: usize = 32;

/// What is kept of an exec that waits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) call: Call,
    pub(crate) stdin: Option<Vec<u8>>,
}

pub(crate) struct Seal(XChaCha20Poly1305);

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    /// The key in this file; made when it is not there.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self> {
        let failed = |error: std::io::Error| {
            let message = format!("cannot use the queue's key `{}`", path.display());
            Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
        };
        let key = match read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                create(path)?;
                read(path)
            }
            key => key,
        };
        Ok(Self(XChaCha20Poly1305::new(&Key::from(
            key.map_err(failed)?,
        ))))
    }

    pub(crate) fn close(&self, space: &SpaceId, exec: &ExecId, kept: &Kept) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(kept).map_err(|error| internal().caused_by(error))?;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).map_err(|error| internal().caused_by(error))?;
        let sealed = self.0.encrypt(
            &XNonce::from(nonce),
            Payload {
                msg: &plain,
                aad: &bound_to(space, exec),
            },
        );
        let mut bytes = nonce.to_vec();
        bytes.extend(sealed.map_err(|_| internal())?);
        Ok(bytes)
    }

    /// Fails for whatever was not closed here, for this very exec.
    pub(crate) fn open(&self, space: &SpaceId, exec: &ExecId, bytes: &[u8]) -> Result<Kept> {
        let broken = || {
            Error::new(
                Code::Lost,
                Stage::Admit,
                format!("the call of the queued exec `{exec}` cannot be read any more"),
            )
            .hint("it never started: send it again")
        };
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or_else(broken)?;
        let plain = self.0.decrypt(
            &XNonce::from(*nonce),
            Payload {
                msg: sealed,
                aad: &bound_to(space, exec),
            },
        );
        serde_json::from_slice(&plain.map_err(|_| broken())?).map_err(|_| broken())
    }
}

fn bound_to(space: &SpaceId, exec: &ExecId) -> Vec<u8> {
    format!("{space}/{exec}").into_bytes()
}

fn internal() -> Error {
    Error::new(Code::Internal, Stage::Admit, "the call cannot be kept")
}

fn read(path: &Path) -> std::io::Result<[u8; KEY]> {
    let mut file = File::open(path)?;
    if file.metadata()?.mode() & 0o077 != 0 {
        let why = "others than its owner may use it: `chmod 600` it";
        return Err(std::io::Error::other(why));
    }
    let mut key = [0; KEY];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Under another name first, so that nobody ever reads half a key.
fn create(path: &Path) -> Result<()> {
    let failed = |error: std::io::Error| {
        let message = format!("cannot make the queue's key `{}`", path.display());
        Error::new(Code::StoreUnavailable, Stage::Open, message).caused_by(error)
    };
    let mut random = [0; KEY + 8];
    getrandom::fill(&mut random).map_err(|error| internal().caused_by(error))?;
    let (key, name) = random.split_at(KEY);
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    let unfinished = path.with_file_name(format!(".queue.key-{name}"));
    let made = File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)
        .and_then(|mut file| file.write_all(key).and_then(|()| file.sync_all()))
        .and_then(|()| match fs::hard_link(&unfinished, path) {
            // Another server was quicker; its key is as good.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        });
    let _ = fs::remove_file(&unfinished);
    made.map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{
        ByteString, Correlation, EnvVar, Mode, OnExceed, PartialProfile, Program, WorkspaceRef,
    };

    fn kept() -> Kept {
        let text = |text: &str| ByteString::try_from(text).unwrap();
        let call = Call {
            ids: Correlation::of_space(SpaceId::local()),
            client_id: None,
            workspace: WorkspaceRef::Scratch,
            program: Program::Argv {
                command: text("true"),
                args: Vec::new(),
            },
            cwd: None,
            env: vec![EnvVar {
                key: "K".parse().unwrap(),
                value: text("a private value"),
            }],
            inputs: Vec::new(),
            mode: Mode::Run,
            on_exceed: OnExceed::Refuse,
            overrides: PartialProfile::default(),
        };
        Kept {
            call,
            stdin: Some(b"private too".to_vec()),
        }
    }

    #[test]
    fn a_sealed_call_opens_for_its_own_exec_alone_and_shows_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("queue.key");
        let seal = Seal::load_or_create(&path).unwrap();
        let (space, exec) = (SpaceId::local(), ExecId::from_random([1; 16]));
        let sealed = seal.close(&space, &exec, &kept()).unwrap();
        let shown = String::from_utf8_lossy(&sealed);
        assert!(!shown.contains("private"));
        let again = Seal::load_or_create(&path).unwrap();
        assert_eq!(again.open(&space, &exec, &sealed).unwrap(), kept());
        let other = ExecId::from_random([2; 16]);
        assert!(seal.open(&space, &other, &sealed).is_err());
        assert!(seal.open(&"else".parse().unwrap(), &exec, &sealed).is_err());
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(seal.open(&space, &exec, &changed).is_err());
        }
        assert!(seal.open(&space, &exec, &[]).is_err());
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }
}
