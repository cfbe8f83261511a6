//! Random programs: whatever one did on its layer, keeping it gives what it saw at the end.

use std::fmt::Write;

use crate::change::ground::{Ground, applied};

/// The same numbers each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }

    fn path(&mut self) -> String {
        const NAMES: [&str; 4] = ["p", "q", "r", "s"];
        let depth = 1 + self.roll(3);
        let parts: Vec<&str> = (0..depth).map(|_| NAMES[self.roll(NAMES.len())]).collect();
        parts.join("/")
    }

    /// One command; many fail, which is as good.
    fn command(&mut self) -> String {
        let (one, two, number) = (self.path(), self.path(), self.roll(1000));
        match self.roll(14) {
            0 | 1 => format!("echo {number} > {one}"),
            2 => format!("echo {number} >> {one}"),
            3 | 4 => format!("mkdir -p {one}"),
            5 => format!("rm -rf {one}"),
            6 => format!("rm {one}"),
            7 => format!("mv -T {one} {two}"),
            8 => format!("ln {one} {two}"),
            9 => format!("ln -sfn {two} {one}"),
            10 => format!("chmod {} {one}", ["600", "755", "700", "644"][number % 4]),
            11 => format!("cp -a {one} {two}"),
            12 => format!("rm -rf {one}; mkdir {one}; echo {number} > {one}/p"),
            _ => format!("touch -d @{number} {one}"),
        }
    }

    fn script(&mut self, commands: usize) -> String {
        let mut script = "set +e; exec 2> /dev/null\n".to_owned();
        for _ in 0..commands {
            writeln!(script, "{}", self.command()).unwrap();
        }
        script.push_str("true\n");
        script
    }
}

#[test]
fn what_was_seen_is_what_is_kept() {
    let mut changed = 0;
    for seed in 1..=24u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let ground = Ground::new();
        ground.sh(&dice.script(40));
        let before = ground.list();
        let held = ground.hold();
        let script = dice.script(30);
        let seen = ground.changed_by(&held, &script);
        assert_eq!(ground.list(), before, "seed {seed}");
        changed += ground.changes(&held).entries.len();
        applied(&ground.keep(&held));
        assert_eq!(ground.list(), seen, "seed {seed}\n{script}");
    }
    assert!(changed > 120, "{changed}");
}
