//! The secrets of one exec, opened: what its environment says of them, what its backend is handed,
//! what is put in on the way out. Gone with the exec.

use glovebox_backend::{Secret, SecretForm};
use glovebox_gateway::Brokered;
use glovebox_model::{
    BackendName, ByteString, Call, Code, Delivery, Error, NetworkMode, Profile, Result,
    SecretGiven, Stage,
};

use crate::path::random;
use crate::secrets::OpenedSecret;
use crate::secrets::SecretAccess;

const DIRECTORY: &str = "/run/secrets";
/// The first descriptor after the three that every program has.
const FIRST_DESCRIPTOR: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct ExecSecrets(Vec<Item>);

#[derive(Debug)]
struct Item {
    opened: OpenedSecret,
    /// What the program holds in the place of a brokered value. Worthless anywhere else.
    placeholder: Option<String>,
}

impl SecretAccess {
    /// Opens what a call wants. Whether it may have it was decided before.
    pub(crate) fn give(
        &self,
        call: &Call,
        profile: &Profile,
        backend: BackendName,
    ) -> Result<ExecSecrets> {
        if call.secrets.is_empty() {
            return Ok(ExecSecrets::default());
        }
        ensure_deliverable(call, profile, backend)?;
        let opened = self
            .open()?
            .open((&call.ids, call.vouched), &call.secrets)?;
        let items = opened.into_iter().map(|opened| {
            let placeholder = match opened.wanted.delivery {
                Delivery::Broker => Some(placeholder()?),
                Delivery::File | Delivery::Descriptor | Delivery::Env => None,
            };
            Ok(Item {
                opened,
                placeholder,
            })
        });
        items.collect::<Result<_>>().map(ExecSecrets)
    }
}

/// Whether a backend has a way to hand over what is wanted. Looked at before people are asked, since
/// what cannot be given is not worth their attention, and again before anything is opened.
pub(crate) fn ensure_deliverable(
    call: &Call,
    profile: &Profile,
    backend: BackendName,
) -> Result<()> {
    for wanted in &call.secrets {
        let name = &wanted.name;
        match (wanted.delivery, backend) {
            (Delivery::Broker, BackendName::Native)
                if profile.network >= NetworkMode::Allowlist => {}
            (Delivery::Broker, _) => {
                let message = format!(
                    "the secret `{name}` is to be brokered, but the exec has no network of ours"
                );
                return Err(Error::new(Code::InvalidArgument, Stage::Admit, message)
                    .hint("use the native backend and `--net allowlist` with one of its hosts"));
            }
            (_, BackendName::Native) | (Delivery::Env, BackendName::Host) => {}
            // An engine keeps the environment of a container in its configuration, for everybody who
            // may ask it.
            (Delivery::Env, BackendName::Docker) => {
                let message = format!(
                    "the secret `{name}` would stand in the container's configuration, which \
                     `docker inspect` shows"
                );
                return Err(no_way(message).hint("use the native backend: `--backend native`"));
            }
            (Delivery::File | Delivery::Descriptor, BackendName::Docker | BackendName::Host) => {
                let (delivery, backend) = (wanted.delivery, backend.as_str());
                let message = format!(
                    "the `{backend}` backend cannot give the secret `{name}` as `{delivery}`"
                );
                return Err(no_way(message).hint("use the native backend: `--backend native`"));
            }
        }
    }
    Ok(())
}

fn no_way(message: String) -> Error {
    Error::new(Code::BackendUnavailable, Stage::Admit, message)
}

/// Looks like a token, so that programs take it for one.
fn placeholder() -> Result<String> {
    let digits: String = random()?.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("glovebox_{digits}"))
}

impl ExecSecrets {
    /// Needs a place in the sandbox itself.
    pub(crate) fn needs_room(&self) -> bool {
        self.0
            .iter()
            .any(|it| it.opened.wanted.delivery == Delivery::File)
    }

    /// Where the program finds them.
    pub(crate) fn variables(&self) -> Result<Vec<(ByteString, ByteString)>> {
        let mut descriptor = FIRST_DESCRIPTOR;
        let mut all = Vec::new();
        for Item {
            opened,
            placeholder,
        } in &self.0
        {
            let name = &opened.wanted.name;
            let value = match opened.wanted.delivery {
                Delivery::File => format!("{DIRECTORY}/{name}").into_bytes(),
                Delivery::Descriptor => {
                    descriptor += 1;
                    (descriptor - 1).to_string().into_bytes()
                }
                Delivery::Broker => placeholder.clone().unwrap_or_default().into_bytes(),
                Delivery::Env => opened.value.to_vec(),
            };
            let key = opened.variable.as_str();
            let (Some(key), Some(value)) = (ByteString::new(key), ByteString::new(value)) else {
                let message = format!("the secret `{name}` cannot be the value of a variable");
                return Err(Error::new(Code::InvalidArgument, Stage::Admit, message)
                    .hint("it holds a zero byte; have it as a file: `--secret NAME=file`"));
            };
            all.push((key, value));
        }
        Ok(all)
    }

    /// What the backend is handed for this one run.
    pub(crate) fn handed(&self) -> Vec<Secret<'_>> {
        let form = |delivery| match delivery {
            Delivery::File => Some(SecretForm::File),
            Delivery::Descriptor => Some(SecretForm::Descriptor),
            Delivery::Broker | Delivery::Env => None,
        };
        let handed = self.0.iter().filter_map(|Item { opened, .. }| {
            Some(Secret {
                name: &opened.wanted.name,
                value: &opened.value,
                form: form(opened.wanted.delivery)?,
            })
        });
        handed.collect()
    }

    pub(crate) fn brokered(&self) -> Vec<Brokered> {
        let brokered = self.0.iter().filter_map(|item| {
            Some(Brokered {
                name: item.opened.wanted.name.clone(),
                placeholder: item.placeholder.clone()?,
                value: item.opened.value.clone(),
                hosts: item.opened.hosts.clone(),
            })
        });
        brokered.collect()
    }

    pub(crate) fn recorded(&self) -> Vec<SecretGiven> {
        self.0.iter().map(|it| it.opened.given()).collect()
    }
}
