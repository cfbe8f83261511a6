//! The effects of one exec as they are seen: by the sandbox's supervisor, at its way out, and told
//! by tools themselves. Each is on file before anybody hears of it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_capture::Secrets;
use glovebox_model::{Deed, Effect, EffectCount};
use glovebox_workspace::EffectLog;
use jiff::Timestamp;
use serde_json::Value;

/// Kept of one exec; those that come after are counted.
const MOST: usize = 20_000;
/// Of their lines: what a program says of itself must not fill our memory.
const MOST_BYTES: u64 = 48 << 20;
/// Of those that are only told while the program runs.
const MOST_TOLD: u64 = 5_000;

/// Who is told of effects while the program runs, from any thread.
pub trait Listener: Send + Sync {
    /// `at` is the place of its line in the log.
    fn effect(&self, effect: &Effect, at: (u64, u32));
}

/// What is known of an effect before it has a number.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) deed: Deed,
    /// Why policy would not let it happen.
    pub(crate) refusal: Option<String>,
    pub(crate) simulated_result: Option<Value>,
}

pub(crate) struct Gathering {
    inner: Mutex<Inner>,
    masks: Arc<Secrets>,
    listener: Option<Arc<dyn Listener>>,
}

struct Inner {
    log: EffectLog,
    effects: Vec<Effect>,
    count: EffectCount,
    seq: u64,
    told: u64,
    bytes: u64,
}

/// Everything that was gathered, when nothing more comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gathered {
    pub(crate) effects: Vec<Effect>,
    pub(crate) count: EffectCount,
}

impl Gathering {
    pub(crate) fn new(
        log: EffectLog,
        masks: Arc<Secrets>,
        listener: Option<Arc<dyn Listener>>,
    ) -> Self {
        let inner = Inner {
            log,
            effects: Vec::new(),
            count: EffectCount::default(),
            seq: 0,
            told: 0,
            bytes: 0,
        };
        Self {
            inner: Mutex::new(inner),
            masks,
            listener,
        }
    }

    pub(crate) fn masks(&self) -> &Secrets {
        &self.masks
    }

    /// Its number.
    pub(crate) fn add(&self, observed: Observed) -> u64 {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.seq += 1;
        inner.count.total += 1;
        if observed.refusal.is_some() {
            inner.count.violations += 1;
        }
        let told = match inner.effects.len() < MOST && inner.bytes < MOST_BYTES {
            true => self.tell_as(&mut inner, observed, false),
            false => None,
        };
        match told {
            Some(effect) => inner.effects.push(effect),
            None => inner.count.dropped += 1,
        }
        inner.seq
    }

    /// For whoever watches: what came of it is added at the end.
    pub(crate) fn tell(&self, observed: Observed) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.told < MOST_TOLD {
            inner.told += 1;
            inner.seq += 1;
            self.tell_as(&mut inner, observed, true);
        }
    }

    /// None when it cannot be told: it does not fit, or cannot be masked.
    fn tell_as(&self, inner: &mut Inner, observed: Observed, provisional: bool) -> Option<Effect> {
        let effect = self.masked(Effect {
            seq: inner.seq,
            at: Timestamp::now(),
            deed: observed.deed,
            would_succeed: observed.refusal.is_none(),
            // It may quote a name, and what follows a line break in that would pass for another line.
            failure_reason: observed.refusal.map(|why| why.replace('\n', "\\n")),
            provisional,
            simulated_result: observed.simulated_result,
        })?;
        let at = inner.log.add(&effect)?;
        inner.bytes += u64::from(at.1);
        if let Some(listener) = &self.listener {
            listener.effect(&effect, at);
        }
        Some(effect)
    }

    /// Seen by somebody and not told one by one.
    pub(crate) fn dropped(&self, more: u64) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.count.total = inner.count.total.saturating_add(more);
        inner.count.dropped = inner.count.dropped.saturating_add(more);
    }

    pub(crate) fn all(&self) -> Gathered {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Gathered {
            effects: inner.effects.clone(),
            count: inner.count,
        }
    }

    /// A program puts a secret into an argument or a name as easily as into its output.
    fn masked(&self, effect: Effect) -> Option<Effect> {
        if self.masks.is_empty() {
            return Some(effect);
        }
        let mut value = serde_json::to_value(&effect).ok()?;
        match self.masks.redact_json(&mut value) {
            false => Some(effect),
            true => serde_json::from_value(value).ok(),
        }
    }
}

impl fmt::Debug for Gathering {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gathering")
    }
}
