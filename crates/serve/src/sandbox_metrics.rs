//! What the server counts about its sandboxes: those that stand ready, and those that are kept.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use glovebox_engine::PoolStats;
use glovebox_model::{Sandbox, SandboxState};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// The engine counts; this only tells what it said last.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxMetrics(Arc<Mutex<Option<Known>>>);

#[derive(Debug)]
struct Known {
    pool: PoolStats,
    /// How many stand in each of [`SandboxState::ALL`].
    kept: [u64; SandboxState::ALL.len()],
}

impl SandboxMetrics {
    pub(crate) fn tell(&self, pool: &PoolStats, kept: &[Sandbox]) {
        let count = |state| kept.iter().filter(|row| row.state == state).count() as u64;
        let known = Known {
            pool: pool.clone(),
            kept: SandboxState::ALL.map(count),
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
    }
}

impl Collector for SandboxMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(Known { pool, kept }) = known.as_ref() else {
            return Ok(());
        };
        for (name, help, count) in [
            (
                "pool_hits",
                "Execs that got a sandbox that stood ready",
                pool.hits,
            ),
            (
                "pool_misses",
                "Execs that found none, and had one made",
                pool.misses,
            ),
            ("pool_built", "Sandboxes that were made ready", pool.built),
            (
                "pool_failed",
                "Sandboxes that could not be made ready",
                pool.failed,
            ),
        ] {
            let counter = ConstCounter::new(count);
            let one = encoder.encode_descriptor(name, help, None, counter.metric_type())?;
            counter.encode(one)?;
        }
        let found = [("borrow", pool.dead_on_borrow), ("rest", pool.dead_at_rest)];
        let help = "Sandboxes that stood ready and were found dead";
        let kind = ConstCounter::new(0u64).metric_type();
        let mut dead = encoder.encode_descriptor("pool_dead", help, None, kind)?;
        for (when, count) in found {
            ConstCounter::new(count).encode(dead.encode_family(&[("found", when)])?)?;
        }
        for (name, help, count) in [
            ("pool_idle", "Sandboxes that stand ready", pool.idle),
            (
                "pool_building",
                "Sandboxes that are being made ready",
                pool.building,
            ),
        ] {
            let gauge = ConstGauge::new(count);
            let one = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(one)?;
        }
        for (name, help, micros) in [
            (
                "pool_refill_mean",
                "How long it takes to make one ready",
                pool.refill_mean_us,
            ),
            (
                "pool_refill_last",
                "How long it took the last time",
                pool.refill_last_us,
            ),
        ] {
            let gauge = ConstGauge::new(seconds(micros));
            let kind = gauge.metric_type();
            let one = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), kind)?;
            gauge.encode(one)?;
        }
        let help = "Kept sandboxes of this server";
        let kind = ConstGauge::new(0u64).metric_type();
        let mut states = encoder.encode_descriptor("sandboxes", help, None, kind)?;
        for (state, count) in SandboxState::ALL.into_iter().zip(kept) {
            let label = [("state", state.as_str())];
            ConstGauge::new(*count).encode(states.encode_family(&label)?)?;
        }
        Ok(())
    }
}

fn seconds(micros: u64) -> f64 {
    std::time::Duration::from_micros(micros).as_secs_f64()
}
