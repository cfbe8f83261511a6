//! How fast streams come through:
//! `cargo run --release -p glovebox-capture --example redaction_speed [MEGABYTES]`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use glovebox_capture::Secrets;
use glovebox_model::SecretName;

const CHUNK: usize = 64 * 1024;
const PIECE: usize = 8 << 20;

struct Dice(u64);

impl Dice {
    /// xorshift: the same numbers each time.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of(&mut self, letters: &[u8]) -> u8 {
        let at = usize::try_from(self.next() >> 33).unwrap_or(0);
        letters[at % letters.len()]
    }
}

const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn word(dice: &mut Dice, length: usize) -> Vec<u8> {
    (0..length).map(|_| dice.of(LETTERS)).collect()
}

fn secrets(count: usize) -> Option<Secrets> {
    let mut dice = Dice(7);
    let values = (0..count).filter_map(|number| {
        let value = [b"sk-live-".to_vec(), word(&mut dice, 40)].concat();
        Some((format!("s{number}").parse::<SecretName>().ok()?, value))
    });
    Secrets::compile(values).ok()
}

fn text(dice: &mut Dice) -> Vec<u8> {
    let words = "INFO the request GET /v1/execs/42 was answered in 17 ms \"status\": 200, user=anna \
                 -rw-r--r-- 1 root root 4096 Nov 16 src/main.rs warning: unused variable `x`";
    let words: Vec<&str> = words.split(' ').collect();
    let mut text = Vec::with_capacity(PIECE + 128);
    while text.len() < PIECE {
        for _ in 0..12 {
            let at = usize::try_from(dice.next() >> 33).unwrap_or(0);
            text.extend_from_slice(words[at % words.len()].as_bytes());
            text.push(b' ');
        }
        text.push(b'\n');
    }
    text
}

fn coloured(dice: &mut Dice) -> Vec<u8> {
    let plain = text(dice);
    let words = plain.split(|it| *it == b' ').take(PIECE / 16);
    let mut text = Vec::with_capacity(PIECE * 2);
    for word in words {
        text.extend_from_slice(b"\x1b[01;34m");
        text.extend_from_slice(word);
        text.extend_from_slice(b"\x1b[0m ");
    }
    text
}

fn binary(dice: &mut Dice) -> Vec<u8> {
    (0..PIECE / 8)
        .flat_map(|_| dice.next().to_le_bytes())
        .collect()
}

fn wrapped(dice: &mut Dice) -> Vec<u8> {
    let lines = (0..PIECE / 77).flat_map(|_| [word(dice, 76), b"\n".to_vec()].concat());
    lines.collect()
}

/// With a backslash before every quote and line break.
fn escaped(dice: &mut Dice) -> Vec<u8> {
    let escape = |byte: u8| match byte {
        b'"' => b"\\\"".to_vec(),
        b'/' => b"\\u002f".to_vec(),
        byte => vec![byte],
    };
    text(dice).into_iter().flat_map(escape).collect()
}

/// As `xxd` prints it.
fn dumped(dice: &mut Dice) -> Vec<u8> {
    let row = |row: &[u8]| {
        let hex: Vec<String> = row
            .chunks(2)
            .map(|it| it.iter().map(|it| format!("{it:02x}")).collect())
            .collect();
        format!("00000000: {}  ................\n", hex.join(" ")).into_bytes()
    };
    binary(dice)[..PIECE / 4].chunks(16).flat_map(row).collect()
}

/// A secret in about every kilobyte.
fn leaking(dice: &mut Dice) -> Vec<u8> {
    let value = [b"sk-live-".to_vec(), word(&mut Dice(7), 40)].concat();
    let text = text(dice);
    text.chunks(1024)
        .flat_map(|it| [it, &value].concat())
        .collect()
}

/// On a processor, so that what else the machine does is not counted.
fn spent() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// MB/s, and how many bytes were held back at most.
fn rate(secrets: &Secrets, input: &[u8], bytes: usize) -> Option<(f64, usize)> {
    let mut redactor = secrets.redactor();
    let mut out = Vec::with_capacity(2 * CHUNK);
    let (mut done, mut held) = (0, 0);
    let begins = spent()?;
    while done < bytes {
        for chunk in input.chunks(CHUNK) {
            redactor.push(black_box(chunk), &mut out);
            black_box(&out);
            out.clear();
            held = held.max(redactor.held());
            done += chunk.len();
        }
    }
    let spent = spent()? - begins;
    #[allow(clippy::cast_precision_loss)]
    let rate = done as f64 / 1e6 / spent.as_secs_f64();
    Some((rate, held))
}

fn main() {
    let megabytes = std::env::args()
        .nth(1)
        .and_then(|it| it.parse().ok())
        .unwrap_or(128usize);
    let mut dice = Dice(42);
    let inputs = [
        ("text", text(&mut dice)),
        ("binary", binary(&mut dice)),
        ("base64", wrapped(&mut dice)),
        ("coloured", coloured(&mut dice)),
        ("leaking", leaking(&mut dice)),
        ("escaped", escaped(&mut dice)),
        ("dumped", dumped(&mut dice)),
    ];
    println!("{megabytes} MB of each, in chunks of 64 KiB");
    for count in [0, 1, 100, 1000] {
        let begins = Instant::now();
        let Some(secrets) = secrets(count) else {
            return println!("the secrets cannot be compiled");
        };
        let compiled = begins.elapsed();
        println!("{count} secrets, compiled in {compiled:.1?}: {secrets:?}");
        for (name, input) in &inputs {
            let Some((rate, held)) = rate(&secrets, input, megabytes * 1_000_000) else {
                return println!("this system does not tell what a thread costs");
            };
            println!("  {name:<9} {rate:>7.0} MB/s, at most {held} bytes held");
        }
    }
}
