//! Yes or no.

use std::time::Duration;

use jiff::Timestamp;

use super::{Prompt, Typed};
use crate::paint::Paint;

/// Nobody who is there thinks longer.
const PATIENCE: Duration = Duration::from_secs(60 * 60);

impl Prompt {
    /// Only an outspoken yes is one; what is no answer asks again. `shown` holds nothing that could
    /// steer a terminal.
    pub(crate) fn confirm(&self, shown: impl FnOnce(Paint) -> String, question: &str) -> bool {
        self.say(&shown(self.paint));
        let until = Timestamp::now() + PATIENCE;
        loop {
            let Typed::Line(line) = self.line(question, until) else {
                self.say("\n");
                return false;
            };
            match line.to_lowercase().as_str() {
                "y" | "yes" => return true,
                "n" | "no" => return false,
                _ => {}
            }
        }
    }
}
