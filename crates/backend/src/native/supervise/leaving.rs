//! An end that is known before the kernel has tidied up after it.

use super::Run;
use crate::native::preload::Interpreter;
use crate::native::processes::Leaving;

impl Run<'_> {
    /// An interpreter that closes its outputs is about to go. Giving its memory back takes the kernel longer
    /// than the program may have run, so nobody waits for that: it is enough that the kernel says that it
    /// can do nothing any more, and that nobody else is there.
    pub(super) fn has_left(&mut self) -> bool {
        const LOOKS: usize = 40;
        let closed = self.outlets.iter().all(|outlet| outlet.pipe().is_none());
        let interpreter = self.listener.as_ref().map(|it| &it.interpreter);
        let (Some(pid), Some(group)) = (
            interpreter.and_then(Interpreter::observable),
            &self.seat.group,
        ) else {
            return false;
        };
        if !closed || self.looked_for_leaving || self.stopping.is_some() {
            return false;
        }
        self.looked_for_leaving = true;
        for _ in 0..LOOKS {
            match Leaving::of(pid) {
                Leaving::Not => std::thread::yield_now(),
                Leaving::Gone => return false,
                Leaving::Well => {
                    let keeper = self.seat.handle.keeper_pid();
                    let known = [Some(pid), self.watch.init(), Some(keeper)];
                    let inside = group.processes();
                    return inside.is_ok_and(|it| it.iter().all(|pid| known.contains(&Some(*pid))));
                }
            }
        }
        false
    }
}
