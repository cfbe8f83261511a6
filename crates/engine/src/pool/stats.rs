//! What the pool has done so far.

use std::collections::HashMap;
use std::time::Duration;

use glovebox_model::PoolConfig;
use serde::Serialize;

use super::shape::{Kind, Shape};
use super::shelf::Shelf;

#[derive(Debug, Default)]
pub(super) struct Tally {
    hits: u64,
    misses: u64,
    by_shape: HashMap<Shape, (u64, u64)>,
    pub(super) dead_on_borrow: u64,
    pub(super) dead_at_rest: u64,
    pub(super) failed: u64,
    built: u64,
    building: Duration,
    last: Duration,
}

/// Shapes that are remembered after their shelf is gone.
const SHAPES: usize = 256;

impl Tally {
    pub(super) fn hit(&mut self, shape: &Shape) {
        self.hits += 1;
        if let Some(own) = self.own(shape) {
            own.0 += 1;
        }
    }

    pub(super) fn went_cold(&mut self) {
        self.misses += 1;
    }

    /// There was none of this shape; another may have done as well.
    pub(super) fn miss(&mut self, shape: &Shape) {
        if let Some(own) = self.own(shape) {
            own.1 += 1;
        }
    }

    fn own(&mut self, shape: &Shape) -> Option<&mut (u64, u64)> {
        let room = self.by_shape.len() < SHAPES;
        if !room && !self.by_shape.contains_key(shape) {
            return None;
        }
        Some(self.by_shape.entry(shape.clone()).or_default())
    }

    pub(super) fn built(&mut self, took: Duration) {
        self.built += 1;
        self.building += took;
        self.last = took;
    }
}

/// The pool as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolStats {
    pub enabled: bool,
    /// Why it is off, when the host is the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub max: u32,
    pub idle: u64,
    pub building: u64,
    /// Execs that got a warm sandbox, and that found none and went cold.
    pub hits: u64,
    pub misses: u64,
    /// Found dead when they were to be given away, or while they waited.
    pub dead_on_borrow: u64,
    pub dead_at_rest: u64,
    pub built: u64,
    pub failed: u64,
    /// How long building one takes.
    pub refill_mean_us: u64,
    pub refill_last_us: u64,
    pub shapes: Vec<ShelfStats>,
}

/// The sandboxes of one configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShelfStats {
    pub config_hash: String,
    /// `native`, `python`, `node` or `container`.
    pub kind: String,
    pub idle: u64,
    pub building: u64,
    pub wanted: u64,
    pub hits: u64,
    pub misses: u64,
}

impl PoolStats {
    pub(crate) fn off(config: &PoolConfig, reason: Option<String>) -> Self {
        let nothing = Tally::default();
        Self {
            enabled: false,
            reason,
            ..Self::of(config, &nothing, &HashMap::new())
        }
    }

    pub(super) fn of(config: &PoolConfig, tally: &Tally, shelves: &HashMap<Shape, Shelf>) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut shapes: Vec<_> = shelves
            .iter()
            .map(|(shape, shelf)| ShelfStats::of(shape, shelf, tally))
            .collect();
        shapes.sort_by(|a, b| (&a.kind, &a.config_hash).cmp(&(&b.kind, &b.config_hash)));
        Self {
            enabled: true,
            reason: None,
            max: config.max,
            idle: shapes.iter().map(|it| it.idle).sum(),
            building: shapes.iter().map(|it| it.building).sum(),
            hits: tally.hits,
            misses: tally.misses,
            dead_on_borrow: tally.dead_on_borrow,
            dead_at_rest: tally.dead_at_rest,
            built: tally.built,
            failed: tally.failed,
            refill_mean_us: micros(tally.building).checked_div(tally.built).unwrap_or(0),
            refill_last_us: micros(tally.last),
            shapes,
        }
    }
}

impl ShelfStats {
    fn of(shape: &Shape, shelf: &Shelf, tally: &Tally) -> Self {
        let (hits, misses) = tally.by_shape.get(shape).copied().unwrap_or_default();
        let kind = match shape.kind() {
            Kind::Native => "native",
            Kind::Interpreter(language) => language.as_str(),
            Kind::Container { .. } => "container",
        };
        Self {
            config_hash: shape.hash().to_owned(),
            kind: kind.to_owned(),
            idle: shelf.idle.len() as u64,
            building: shelf.building as u64,
            wanted: shelf.wanted as u64,
            hits,
            misses,
        }
    }
}
