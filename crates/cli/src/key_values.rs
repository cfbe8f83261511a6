//! Lines of a name and a value, in titled sections.

use std::fmt::Write as _;

use crate::paint::{Paint, Tone};
use crate::render::one_line;

#[derive(Debug)]
pub(crate) struct KeyValues {
    pub(crate) text: String,
    paint: Paint,
}

impl KeyValues {
    pub(crate) fn new(paint: Paint) -> Self {
        Self {
            text: String::new(),
            paint,
        }
    }

    pub(crate) fn title(&mut self, title: &str) {
        let title = self.paint.apply(Tone::Heading, title);
        let _ = writeln!(self.text, "\n{title}");
    }

    pub(crate) fn line(&mut self, name: &str, value: &str) {
        self.toned(name, Tone::Plain, value);
    }

    pub(crate) fn toned(&mut self, name: &str, tone: Tone, value: &str) {
        let value = self.paint.apply(tone, &one_line(value));
        let _ = writeln!(self.text, "{name:<11} {value}");
    }

    pub(crate) fn optional(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(name, value);
        }
    }
}
