//! Kept sandboxes and backends for a process that does one thing and goes.

use glovebox_backend::Cancel;
use glovebox_model::{Code, Correlation, DockerConfig, Error, Lifetime, Result, Sandbox, Stage};

use crate::backends::BackendView;
use crate::engine::KeeperSlot;
use crate::path::CommandSource;
use crate::sandboxes::SandboxRequest;
use crate::sandboxes::Sandboxes;

impl Sandboxes {
    /// Makes a sandbox and sees it stand. This process goes, so a native one is down again when
    /// this returns, and built anew for whoever uses it next; a container stays.
    pub fn create_here(
        &self,
        request: SandboxRequest,
        seat: KeeperSlot,
        cancel: &Cancel,
    ) -> Result<Sandbox> {
        let mut supply = CommandSource {
            seat: Some(seat),
            cancel,
        };
        let made = self.create(request, &mut supply).and_then(|row| {
            // Whoever does not want it any more does not find it either.
            match cancel.is_asked() {
                false => Ok(row),
                true => {
                    self.remove(&row.space_id, row.sandbox_id.as_str(), "canceled")?;
                    let message = "canceled while the sandbox was made; nothing is left of it";
                    Err(Error::new(Code::Canceled, Stage::Admit, message))
                }
            }
        });
        self.registry.leave();
        let made = made?;
        self.registry.get(&made.space_id, made.sandbox_id.as_str())
    }

    /// Everything there is on this host for these ids. A runtime that is named stands in the place
    /// of the configured one.
    pub fn backends_here(&self, ids: &Correlation, runtime: Option<&str>) -> Vec<BackendView> {
        let config = self.instance.config().docker_for(ids, Lifetime::Exec);
        self.instance.backends().all(&DockerConfig {
            runtime: runtime.map(str::to_owned).or(config.runtime),
            ..config
        })
    }
}
