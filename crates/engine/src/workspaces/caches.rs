//! Directories that outlive an exec and are shown beside its workspace.

use glovebox_model::{BackendName, Correlation, Mode, Vouched};
use glovebox_policy::CacheSharing;
use glovebox_workspace::{CacheKey, CacheMode, CacheName};

use super::lease::WorkspaceLease;
use crate::path::Plan;
use crate::workspaces::Workspaces;

/// Stands between a user and the agent that named it. It is the one character that no id holds, so
/// that no user is called so.
const NAMED_BY: char = '\0';

impl Workspaces {
    /// Whose cache an exec has, where each user has one. A user that an agent only names is nobody
    /// whose cache it could read, or fill: what it has is its own, for that user.
    fn cache_owner(&self, ids: &Correlation, vouched: Vouched) -> Option<String> {
        let user = match (&ids.user_id, self.instance.is_server()) {
            (Some(user), _) => user.clone(),
            (None, true) => return None,
            // Without a server there is one user: whose state directory it is.
            (None, false) => "local".to_owned(),
        };
        Some(match (&ids.agent_id, vouched.proves_user()) {
            (Some(agent), false) => format!("{user}{NAMED_BY}{agent}"),
            (None, _) | (_, true) => user,
        })
    }

    /// A cache that cannot be shown costs time and nothing else, so it is only told.
    pub(super) fn open_caches(&self, plan: &Plan, workspace_lease: &mut WorkspaceLease) {
        let caches = &self.instance.policy.workspace_settings().caches;
        if caches.is_empty() || plan.assignment().is_some() {
            return;
        }
        if plan.chosen().backend != BackendName::Native {
            let note = "caches are shown in native sandboxes only";
            return workspace_lease.notes.push(note.to_owned());
        }
        let ids = &plan.assessed().call().ids;
        let owner = self.cache_owner(ids, plan.assessed().call().vouched);
        for (name, settings) in caches {
            let at = settings.at.to_string_lossy();
            if let Some(path) = workspace_lease.denied.below(&at).iter().next() {
                let note = format!(
                    "cache `{}` is not shown: {path} may deny something in it",
                    name.as_str()
                );
                workspace_lease.notes.push(note);
                continue;
            }
            let mode = match settings.mode {
                CacheSharing::Shared => CacheMode::Shared,
                CacheSharing::PerUser => CacheMode::PerUser,
            };
            let call = plan.assessed().call();
            let is_judged = !plan.gated().gates.is_empty();
            let passes = call.mode == Mode::Simulate || call.over.is_some() || is_judged;
            if mode == CacheMode::PerUser && passes {
                let note = format!(
                    "cache `{}` is not shown: nothing that this writes may stay unjudged",
                    name.as_str()
                );
                workspace_lease.notes.push(note);
                continue;
            }
            if mode == CacheMode::PerUser && workspace_lease.is_in_memory() {
                let note = format!(
                    "cache `{}` is not shown: it lies on disk, and the kernel's disk limit is demanded",
                    name.as_str()
                );
                workspace_lease.notes.push(note);
                continue;
            }
            let opened = name
                .as_str()
                .parse::<CacheName>()
                .and_then(|name| CacheKey::new(&ids.space_id, owner.as_deref(), name, mode))
                .and_then(|key| self.instance.layout(&ids.space_id)?.cache(&key));
            match opened {
                Ok(cache) => workspace_lease.caches.push((cache, settings.at.clone())),
                Err(error) => {
                    let note = format!("cache `{}` is not shown: {}", name.as_str(), error.message);
                    workspace_lease.notes.push(note);
                }
            }
        }
    }
}
