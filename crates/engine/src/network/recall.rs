//! Secrets that are taken back while a program still runs: what is put in on the way out is not put
//! in any more. What is inside already cannot be taken away.

use std::collections::HashMap;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use glovebox_model::{Delivery, Result, SecretGiven, SpaceId};

use super::Way;
use crate::network::Network;
use crate::secrets::RevokedWatch;

/// Ways out with secrets in use, by a number.
#[derive(Debug, Clone, Default)]
pub(crate) struct InUse(Arc<Mutex<(u64, HashMap<u64, Used>)>>);

#[derive(Debug, Clone)]
struct Used {
    way: Weak<Way>,
    space: SpaceId,
    given: Vec<SecretGiven>,
}

impl InUse {
    fn lock(&self) -> MutexGuard<'_, (u64, HashMap<u64, Used>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For as long as the exec runs. Whoever takes a secret back in this process is heard at once.
#[derive(Debug)]
pub(crate) struct RevocationWatch {
    #[expect(dead_code, reason = "held to be dropped")]
    watch: RevokedWatch,
    all: InUse,
    number: u64,
}

impl Drop for RevocationWatch {
    fn drop(&mut self) {
        self.all.lock().1.remove(&self.number);
    }
}

/// How often it is looked whether another process has taken something back.
const ROUND: Duration = Duration::from_secs(1);

impl Network {
    pub(crate) fn recall(
        &self,
        way: &Arc<Way>,
        space: &SpaceId,
        given: Vec<SecretGiven>,
    ) -> Result<Option<RevocationWatch>> {
        let brokered: Vec<SecretGiven> = given
            .into_iter()
            .filter(|it| it.delivery == Delivery::Broker)
            .collect();
        if brokered.is_empty() {
            return Ok(None);
        }
        let (weak, own, meant) = (Arc::downgrade(way), space.clone(), brokered.clone());
        let watch = self.secrets.open()?.on_revoke(move |revoked| {
            let is_meant = |it: &SecretGiven| {
                it.name == revoked.secret
                    && (revoked.grant.is_none() || it.grant_id == revoked.grant)
            };
            if revoked.space == own
                && meant.iter().any(is_meant)
                && let Some(way) = weak.upgrade()
            {
                way.revoke(&revoked.secret);
            }
        });
        let all = self.in_use.clone();
        let number = {
            let mut all = all.lock();
            all.0 += 1;
            let used = Used {
                way: Arc::downgrade(way),
                space: space.clone(),
                given: brokered,
            };
            let number = all.0;
            all.1.insert(number, used);
            number
        };
        Ok(Some(RevocationWatch { watch, all, number }))
    }

    /// Looks whether what is in use may still be: another process may have taken it back.
    pub(crate) fn recheck_secrets(&self) -> Result<()> {
        let used: Vec<Used> = self.in_use.lock().1.values().cloned().collect();
        for it in used {
            for given in &it.given {
                // Said again each time: the exec may not have begun when it was said first.
                if !self.secrets.open()?.stands(&it.space, given)?
                    && let Some(way) = it.way.upgrade()
                {
                    way.revoke(&given.name);
                }
            }
        }
        Ok(())
    }

    /// A server looks by itself; one exec alone is looked after for as long as it runs.
    pub(crate) fn watching<T>(
        &self,
        recall: Option<&RevocationWatch>,
        run: impl FnOnce() -> T,
    ) -> T {
        if recall.is_none() || self.instance.is_server() {
            return run();
        }
        std::thread::scope(|scope| {
            let (over, ended) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(ROUND) {
                    if let Err(error) = self.recheck_secrets() {
                        tracing::warn!(%error, "cannot tell whether a secret was taken back");
                    }
                }
            });
            let done = run();
            drop(over);
            done
        })
    }
}
