//! How long it takes to read a script of about 1 kB: `cargo run --release -p glovebox-risk --example read_speed`.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use glovebox_model::{ByteString, Program};
use glovebox_risk::{read, signals};

const TIMES: u32 = 2000;

fn main() {
    let shell = "set -e\nfor f in src/*.rs; do grep -n \"$f\" index | head -3 >> out.txt; done\n"
        .repeat(13);
    let python = "import json\ndata = json.load(open('a.json'))\nprint(sorted(data['x'])[::-1])\n"
        .repeat(13);
    let javascript =
        "const fs = require('fs');\nconsole.log(fs.readFileSync(`a${1}`).length);\n".repeat(13);
    let text = |it: String| ByteString::new(it).unwrap_or_default();
    let programs = [
        (
            "shell",
            Program::Shell {
                script: text(shell),
            },
        ),
        ("python", Program::Python { code: text(python) }),
        (
            "javascript",
            Program::Javascript {
                code: text(javascript),
            },
        ),
    ];
    for (name, program) in programs {
        let begins = Instant::now();
        for _ in 0..TIMES {
            black_box(read(black_box(&program)));
            black_box(signals(black_box(&program)));
        }
        let each = begins.elapsed() / TIMES;
        println!("{name}: {} µs for read and signals", each.as_micros());
    }
}
