//! One text for what a run did, the same whenever it does the same.

use glovebox_model::{Deed, Effect};
use serde_json::Value;

/// BLAKE3 over the effects, hexadecimal. Without what differs between any two runs: times, numbers
/// of processes, what was told before its last word, and the order in which things that run side by
/// side happened.
pub fn digest(effects: &[Effect]) -> String {
    let mut lines: Vec<String> = effects
        .iter()
        .filter(|it| !it.provisional)
        .map(line)
        .collect();
    lines.sort_unstable();
    let mut hasher = blake3::Hasher::new();
    for line in &lines {
        // JSON holds no bare line break, so that no line runs into the next.
        hasher.update(line.as_bytes());
        hasher.update(b"\n");
    }
    hasher.finalize().to_hex().to_string()
}

fn line(effect: &Effect) -> String {
    let mut deed = effect.deed.clone();
    if let Deed::ProcessSpawn(spawn) = &mut deed {
        (spawn.pid, spawn.parent) = (0, 0);
    }
    match serde_json::to_value(&deed) {
        Ok(value) => Value::from(vec![value, effect.would_succeed.into()]).to_string(),
        // Text that cannot be JSON is still the same text each time.
        Err(_) => format!("{deed:?} {}", effect.would_succeed),
    }
}
