//! One simulation while it is played.

use std::sync::{Mutex, PoisonError};

use super::fault_injection::{FaultInjection, Outcome};
use super::simulated::Simulated;

#[derive(Debug)]
pub(crate) struct Play {
    pub(crate) simulated: Simulated,
    weather: Mutex<FaultInjection>,
}

impl Play {
    pub(crate) fn new(simulated: Simulated) -> Self {
        Self {
            weather: Mutex::new(simulated.weather()),
            simulated,
        }
    }

    /// What becomes of one try to reach a host.
    pub(crate) fn next(&self, host: &str) -> Outcome {
        let mut weather = self.weather.lock().unwrap_or_else(PoisonError::into_inner);
        weather.of_host(host)
    }
}
