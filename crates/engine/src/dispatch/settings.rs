//! What an operator may change while servers run, and what no server of a lower ceiling could keep.

use std::sync::Arc;

use glovebox_model::{Code, Error, Result, Settings, Stage};
use glovebox_store::Actor;

use super::{Dispatcher, locked};

impl Dispatcher {
    pub fn settings(&self) -> (Settings, u64) {
        locked(&self.settings).clone()
    }

    pub fn ceiling(&self) -> u32 {
        self.ceiling
    }

    /// Applied at once to whoever comes next; who runs goes on.
    pub fn change_settings(
        self: &Arc<Self>,
        by: &Actor,
        change: impl FnOnce(Settings, u64) -> Result<Settings> + Send + 'static,
    ) -> Result<(Settings, u64)> {
        let ceiling = self.ceiling;
        let changed = self
            .store()?
            .change_settings(by, move |settings, version| {
                let settings = change(settings, version)?;
                check_settings(&settings, ceiling)?;
                Ok(settings)
            })?;
        self.apply(changed.clone());
        Ok(changed)
    }

    pub(super) fn apply(self: &Arc<Self>, (settings, version): (Settings, u64)) {
        let mut known = locked(&self.settings);
        if version < known.1 {
            return;
        }
        locked(&self.admission).set_limits(capped(settings.clone(), self.ceiling));
        *known = (settings, version);
        drop(known);
        self.call_next();
    }
}

/// What another server has allowed itself may be more than this one was started for.
pub(super) fn capped(mut settings: Settings, ceiling: u32) -> Settings {
    settings.max_concurrent_execs = settings.max_concurrent_execs.min(ceiling);
    settings
}

/// Settings that no server of this ceiling could keep are refused.
pub fn check_settings(settings: &Settings, ceiling: u32) -> Result<()> {
    let refused = |message: String, hint: &str| {
        Err(Error::new(Code::PolicyDenied, Stage::Resolve, message).hint(hint))
    };
    if settings.max_concurrent_execs > ceiling {
        let asked = settings.max_concurrent_execs;
        return refused(
            format!("`max_concurrent_execs` {asked} is above this server's ceiling, {ceiling}"),
            "the operator raises it: `glovebox serve --max-concurrent N`",
        );
    }
    let zero = [
        ("max_concurrent_execs", Some(settings.max_concurrent_execs)),
        (
            "max_concurrent_per_space",
            settings.max_concurrent_per_space,
        ),
        ("max_concurrent_per_user", settings.max_concurrent_per_user),
        ("max_sessions", Some(settings.max_sessions)),
        ("max_sessions_per_space", settings.max_sessions_per_space),
    ];
    for (name, value) in zero {
        if value == Some(0) {
            return Err(Error::new(
                Code::InvalidArgument,
                Stage::Parse,
                format!("`{name}` must be at least 1"),
            ));
        }
    }
    Ok(())
}
