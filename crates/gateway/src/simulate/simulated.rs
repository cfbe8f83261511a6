//! A simulation that was checked: everything in it can be played.

use std::sync::Arc;

use glovebox_model::{Result, Simulation};
use hyper::Method;

use super::check::{at_most, numbered, refuse};
use super::fault_injection::{FaultInjection, Front, fronts, seeded};
use super::preset::Preset;

const RESPONSES_MOST: usize = 256;
/// Bodies and headers together: they are in memory for as long as the exec runs.
const BYTES_MOST: usize = 4 * 1024 * 1024;

/// What a simulated network answers, and how it fails. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Simulated(Arc<Checked>);

#[derive(Debug)]
struct Checked {
    presets: Vec<Preset>,
    fronts: Vec<Front>,
    seed: u64,
}

impl Simulated {
    /// # Errors
    /// `invalid_argument` for whatever cannot be played, with the number of the answer or fault.
    pub fn new(simulation: &Simulation) -> Result<Self> {
        at_most("responses", simulation.responses.len(), RESPONSES_MOST)?;
        let presets = numbered("responses", &simulation.responses, Preset::new)?;
        let bytes: usize = presets.iter().map(Preset::bytes).sum();
        if bytes > BYTES_MOST {
            return Err(refuse(format!(
                "the answers have {bytes} bytes in all; at most are {BYTES_MOST}"
            ))
            .hint("shorten their bodies"));
        }
        Ok(Self(Arc::new(Checked {
            presets,
            fronts: fronts(&simulation.faults)?,
            seed: seeded(simulation.seed)?,
        })))
    }

    /// From its beginning, each time.
    pub fn weather(&self) -> FaultInjection {
        FaultInjection::of(self.0.seed, &self.0.fronts)
    }

    /// The first that fits, with its number. `hosts` are the names that are meant, the best first.
    pub(crate) fn preset(
        &self,
        hosts: &[String],
        port: u16,
        method: &Method,
        path: &str,
    ) -> Option<(usize, &Preset)> {
        let find = |host: &String| {
            let mut all = self.0.presets.iter().enumerate();
            all.find(|(_, it)| it.fits(host, port, method, path))
        };
        hosts.iter().find_map(find)
    }

    /// Whether anything is answered in the name of this host.
    pub(crate) fn answers_for(&self, host: &str) -> bool {
        self.0.presets.iter().any(|it| it.is_for(host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_model::Code;

    fn simulation(text: &str) -> Simulation {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_wrong_is_named_by_its_number() {
        let two = simulation(r#"{"responses": [{"host": "*"}, {"host": "*", "status": 700}]}"#);
        let error = Simulated::new(&two).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert!(error.message.starts_with("`responses[1]`: "), "{error}");
        assert!(!error.hints.is_empty());
        let one = simulation(r#"{"faults": [{"success_percent": 50}]}"#);
        let error = Simulated::new(&one).unwrap_err();
        assert!(error.message.starts_with("`faults[0]`: "), "{error}");
    }

    #[test]
    fn too_many_and_too_large_answers_are_refused() {
        let one = simulation(r#"{"responses": [{"host": "*"}], "faults": [{"host": "*"}]}"#);
        let mut many = one.clone();
        many.responses = vec![one.responses[0].clone(); 257];
        assert!(Simulated::new(&many).unwrap_err().message.contains("256"));
        many.responses.pop();
        assert!(Simulated::new(&many).is_ok());
        many.faults = vec![one.faults[0].clone(); 257];
        assert!(Simulated::new(&many).unwrap_err().message.contains("256"));
        let mut large = one;
        large.responses[0].body = Some("x".repeat(2 * 1024 * 1024));
        large.responses.push(large.responses[0].clone());
        assert!(Simulated::new(&large).is_ok());
        large.responses[1].body = Some("x".repeat(2 * 1024 * 1024 + 1));
        let error = Simulated::new(&large).unwrap_err();
        assert!(error.message.contains("4194305"), "{error}");
    }

    #[test]
    fn without_a_seed_two_simulations_differ() {
        let random = simulation(r#"{"faults": [{"host": "*", "success_percent": 50}]}"#);
        let run = |it: &Simulated| -> Vec<bool> {
            let mut weather = it.weather();
            let failed = |_| weather.of_host("a.test").fault.is_some();
            (0..128).map(failed).collect()
        };
        let (one, other) = (
            Simulated::new(&random).unwrap(),
            Simulated::new(&random).unwrap(),
        );
        assert_eq!(run(&one), run(&one));
        assert_ne!(run(&one), run(&other));
    }

    #[test]
    fn the_first_answer_that_fits_is_given() {
        let two = simulation(
            r#"{"responses": [{"host": "*.a.test", "status": 201}, {"host": "*", "status": 202}]}"#,
        );
        let simulated = Simulated::new(&two).unwrap();
        let status = |host: &str| {
            let found = simulated.preset(&[host.to_owned()], 80, &Method::GET, "/");
            found.map(|(number, it)| (number, it.status.as_u16()))
        };
        assert_eq!(status("b.a.test"), Some((0, 201)));
        assert_eq!(status("c.test"), Some((1, 202)));
    }
}
