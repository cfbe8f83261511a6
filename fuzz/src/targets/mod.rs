//! What is fuzzed.

pub mod adapter;
pub mod code;
pub mod manifest;
pub mod pack;
pub mod paths;
pub mod record;
pub mod redaction;
pub mod rules;
pub mod shell;
pub mod stored;
pub mod tar;
pub mod url;
pub mod zip;

/// What a reader made of some bytes, one thing a line, without the numbers and names that differ
/// between them: a new line means that the bytes came further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(pub String);

#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]) -> Result<String, String>,
    /// What is sound, to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Mends what guards the bytes against accidents, such as a checksum, so that what lies behind
    /// is reached.
    pub mend: fn(&mut [u8]),
    pub words: &'static [&'static [u8]],
}

pub const ALL: [Target; 12] = [
    paths::TARGET,
    adapter::TARGET,
    tar::TARGET,
    zip::TARGET,
    manifest::TARGET,
    pack::TARGET,
    record::TARGET,
    shell::TARGET,
    code::TARGET,
    rules::TARGET,
    redaction::TARGET,
    url::TARGET,
];

impl Target {
    pub fn named(name: &str) -> Option<&'static Self> {
        static TARGETS: [Target; 12] = ALL;
        TARGETS.iter().find(|it| it.name == name)
    }

    pub fn answer(&self, bytes: &[u8]) -> Answer {
        let lines = |verdict: &str, said: &str| {
            let lines = said
                .split('\n')
                .map(|line| format!("{verdict}: {}", plain(line)));
            Answer(lines.collect::<Vec<_>>().join("\n"))
        };
        match (self.run)(bytes) {
            Ok(said) => lines("taken", &said),
            Err(said) => lines("refused", &said),
        }
    }
}

impl Answer {
    pub fn is_taken(&self) -> bool {
        self.0.starts_with("taken")
    }
}

/// Without what is quoted and without digits.
fn plain(said: &str) -> String {
    let named = said.split('`').step_by(2).collect::<Vec<_>>().join("`");
    let quoted = named.split('"').step_by(2).collect::<Vec<_>>().join("\"");
    let mut kept: String = quoted.chars().filter(|it| !it.is_ascii_digit()).collect();
    kept.truncate(kept.floor_char_boundary(160));
    kept
}

/// For what has no checksum.
pub fn as_it_is(_: &mut [u8]) {}
