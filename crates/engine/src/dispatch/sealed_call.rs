//! A call that waits must survive a restart, and it may hold private values in its environment and
//! inputs: it is kept encrypted, under a key that is not in the database, and only until it starts.

use std::path::Path;

use glovebox_model::{
    Call, Code, Consent, Error, ExecId, PartialProfile, Result, ScriptRef, SpaceId, Stage,
};
use serde::{Deserialize, Serialize};

use crate::private_key::private_key;
use crate::secrets;

/// What is kept of an exec that waits.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SealedCall {
    pub(crate) call: Call,
    pub(crate) stdin: Option<Vec<u8>>,
    /// What people took away from it.
    #[serde(default)]
    pub(crate) narrowed: Option<PartialProfile>,
    /// That people agreed to it; in here nobody else can say so.
    #[serde(default)]
    pub(crate) consent: Option<Consent>,
    /// The scripts that they agreed to.
    #[serde(default)]
    pub(crate) scripts: Option<Vec<ScriptRef>>,
    /// The policy under which they agreed.
    #[serde(default)]
    pub(crate) policy: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Seal(secrets::Seal);

impl Seal {
    /// The key in this file; made when it is not there.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self> {
        Ok(Self(secrets::Seal::new(&*private_key(path)?)))
    }

    pub(crate) fn close(
        &self,
        space: &SpaceId,
        exec: &ExecId,
        kept: &SealedCall,
    ) -> Result<Vec<u8>> {
        let plain = serde_json::to_vec(kept).map_err(|error| internal().caused_by(error))?;
        self.0.close(&bound_to(space, exec), &plain)
    }

    /// What a session put out, which is nobody else's to read.
    pub(crate) fn close_tail(
        &self,
        space: &SpaceId,
        exec: &ExecId,
        tail: &[u8],
    ) -> Result<Vec<u8>> {
        self.0.close(&tail_of(space, exec), tail)
    }

    pub(crate) fn open_tail(
        &self,
        space: &SpaceId,
        exec: &ExecId,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let plain = self.0.open(&tail_of(space, exec), bytes)?;
        Some(plain.to_vec())
    }

    /// Fails for whatever was not closed here, for this very exec.
    pub(crate) fn open(&self, space: &SpaceId, exec: &ExecId, bytes: &[u8]) -> Result<SealedCall> {
        let broken = || {
            Error::new(
                Code::Lost,
                Stage::Admit,
                format!("the call of the queued exec `{exec}` cannot be read any more"),
            )
            .hint("it never started: send it again")
        };
        let plain = self
            .0
            .open(&bound_to(space, exec), bytes)
            .ok_or_else(broken)?;
        serde_json::from_slice(&plain).map_err(|_| broken())
    }
}

fn bound_to(space: &SpaceId, exec: &ExecId) -> Vec<u8> {
    format!("{space}/{exec}").into_bytes()
}

fn tail_of(space: &SpaceId, exec: &ExecId) -> Vec<u8> {
    format!("session {space}/{exec}").into_bytes()
}

fn internal() -> Error {
    Error::new(Code::Internal, Stage::Admit, "the call cannot be kept")
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::{ByteString, Correlation, EnvVar, Program, WorkspaceRef};

    fn kept() -> SealedCall {
        let text = |text: &str| ByteString::try_from(text).unwrap();
        let call = Call {
            env: vec![EnvVar {
                key: "K".parse().unwrap(),
                value: text("a private value"),
            }],
            ..Call::new(
                Correlation::of_space(SpaceId::local()),
                glovebox_model::Vouched::People,
                WorkspaceRef::Scratch,
                Program::Argv {
                    command: text("true"),
                    args: Vec::new(),
                },
            )
        };
        SealedCall {
            call,
            stdin: Some(b"private too".to_vec()),
            narrowed: None,
            consent: None,
            scripts: None,
            policy: None,
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
        let names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(names.len(), 1);
    }
}
