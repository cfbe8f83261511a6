//! What a sandbox has only when it has a way out, and what its runs have only when they have
//! secrets.

use std::ffi::CStr;

use glovebox_cage::{Attribute, FileRule, Rights, Steering, Step};
use glovebox_model::NetworkMode;

use super::Builder;
use crate::spec::{SecretFiles, Spec};

/// Where programs look for the certificates that they trust.
const USUAL: [&CStr; 2] = [
    c"/etc/ssl/certs/ca-certificates.crt",
    c"/etc/pki/tls/certs/ca-bundle.crt",
];
/// The same bundle, also where an image has its own idea of /etc.
const TRUST: &CStr = c"/run/ca-certificates.crt";
const SECRETS: &CStr = c"/run/secrets";

const HIDDEN_AWAY: [Attribute; 4] = [
    Attribute::ReadOnly,
    Attribute::NoSuid,
    Attribute::NoDev,
    Attribute::NoExec,
];

/// Retrieval is done for the program, from outside. One that is simulated has a way out whatever it may
/// reach: only so is it seen what it wants.
pub(in crate::native) fn has_way_out(spec: &Spec<'_>) -> bool {
    spec.observe.as_ref().is_some_and(|it| it.simulates) || reaches_out(spec.profile.network)
}

const fn reaches_out(mode: NetworkMode) -> bool {
    match mode {
        NetworkMode::None | NetworkMode::Retrieval => false,
        NetworkMode::Allowlist | NetworkMode::Unrestricted => true,
    }
}

impl Builder<'_, '_> {
    pub(super) fn way_out(&mut self, spec: &Spec<'_>) {
        if has_way_out(spec) {
            self.steps.push(Step::WayOut(Steering::ALL.to_vec()));
        }
    }

    /// After the mounts that they cover, before the root is entered.
    pub(super) fn trust(&mut self, spec: &Spec<'_>) {
        let Some(bundle) = spec.trust else {
            return;
        };
        self.steps.push(Step::File {
            path: TRUST.into(),
            content: bundle.to_vec(),
        });
        for path in USUAL {
            self.steps.push(Step::Cover {
                path: path.into(),
                with: TRUST.into(),
            });
        }
    }

    pub(super) fn secrets(&mut self, secrets: SecretFiles) {
        match secrets {
            SecretFiles::Never => {}
            SecretFiles::PerRun => {
                self.steps.push(Step::Cupboard {
                    path: SECRETS.into(),
                    attributes: HIDDEN_AWAY.to_vec(),
                });
                // For pid 1, which fills it by a mount of its own; what programs see is read-only.
                self.rules.push(FileRule {
                    path: SECRETS.into(),
                    rights: Rights::Write,
                });
            }
        }
    }
}
