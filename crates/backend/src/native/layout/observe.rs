//! What a sandbox has only when it is observed.

use std::ffi::CStr;
use std::os::unix::fs::MetadataExt;

use glovebox_cage::observe::Watch;
use glovebox_cage::{Source, Step};
use glovebox_model::{Code, Error, Result, Stage};

use super::{Builder, READ_ONLY, c_path, unusable};
use crate::spec::Spec;

const DIRECTORY: &CStr = c"/run/glovebox";
const EFFECTS: &CStr = c"/run/glovebox/effects.sock";
const EFFECT_COMMAND: &CStr = c"/run/glovebox/glovebox-effect";

impl Builder<'_, '_> {
    /// With the mounts: the root is not entered yet.
    pub(super) fn effect_command(&mut self, spec: &Spec<'_>) -> Result<()> {
        let Some(observe) = spec.observe.as_ref().filter(|it| it.simulates) else {
            return Ok(());
        };
        self.steps.push(Step::Directory {
            path: DIRECTORY.into(),
            mode: 0o755,
        });
        if let Some(command) = &observe.effect_command {
            let found = std::fs::metadata(command).map_err(|error| unusable(command, error))?;
            let source = Source::Path {
                path: c_path(command)?,
                identity: Some((found.dev(), found.ino())),
            };
            self.steps.push(Step::Mount {
                source,
                target: EFFECT_COMMAND.into(),
                attributes: READ_ONLY.to_vec(),
            });
        }
        Ok(())
    }

    /// In the root, before it is sealed.
    pub(super) fn effects(&mut self, spec: &Spec<'_>) {
        if spec.observe.as_ref().is_some_and(|it| it.simulates) {
            self.steps.push(Step::Effects(EFFECTS.into()));
        }
    }

    /// After everything that pid 1 opens, and before the filter: that one stands above it, and what
    /// it denies is never seen.
    pub(super) fn observe(&mut self, spec: &Spec<'_>) -> Result<()> {
        let Some(observe) = &spec.observe else {
            return Ok(());
        };
        let mut watches = vec![Watch::Processes];
        if observe.simulates || observe.attempts {
            watches.extend([Watch::Network, Watch::Writes]);
        }
        if observe.reads {
            watches.push(Watch::Reads);
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            Error::new(Code::Internal, Stage::Run, "no random numbers").caused_by(error)
        })?;
        let seal = u64::from_ne_bytes(random);
        self.steps.push(Step::Observe { watches, seal });
        Ok(())
    }
}
