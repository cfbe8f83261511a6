//! From a durable intent and a sandbox to a durable outcome.

use std::sync::Arc;

use glovebox_backend::Notice;
use glovebox_model::{Mode, Result};
use glovebox_workspace::Dir;

use crate::effects::{Judging, previewed};
use crate::engine::{Engine, Io};
use crate::network::Watch;
use crate::path::{self, PreparedRun, RunInputs, Walked};
use crate::settings::ToolchainSettings;
use crate::{skill, stage};

impl Engine {
    pub(super) fn execute(
        &self,
        prepared: PreparedRun,
        mut opened: path::Opened,
        settings: &ToolchainSettings,
        io: Io<'_>,
    ) -> Result<Walked> {
        let call = opened.call().clone();
        let PreparedRun {
            sandbox,
            order,
            streams,
            files,
            project,
            toolchains,
            shows_the_host,
            written,
            notes,
            made_as,
            workspace_lease,
            route,
            given,
        } = prepared;
        opened.note(notes, made_as);
        opened.snapshot_before(workspace_lease.snapshot.clone());
        let mut sandbox = sandbox;
        let profile = opened.profile().clone();
        let ready = files
            .place_inputs(&skill::inputs(&call, files.exec()))
            .and_then(|()| workspace_lease.begin())
            .and_then(|()| {
                self.secrets
                    .masks_for(opened.ids(), call.vouched, &given.recorded())
            })
            .and_then(|masks| {
                let exec = files.exec();
                let kept = (&project, exec);
                let listener = io.effects.clone();
                let mut capture = self.effects.capture(
                    (&call, &workspace_lease.gated),
                    &profile,
                    kept,
                    &masks,
                    listener,
                )?;
                let simulation = match call.mode {
                    Mode::Simulate => Some(call.simulation.clone().unwrap_or_default()),
                    Mode::Run | Mode::Transactional | Mode::Mock => None,
                };
                // It may have waited for its turn since it was planned.
                self.simulations.check_rehearsed(&call, &project)?;
                let watch = Watch {
                    masks: Arc::clone(&masks),
                    gathering: capture.as_ref().map(|it| Arc::clone(&it.gathering)),
                    simulation: simulation.as_ref(),
                    previewed: self.simulations.previewed(&call)?.as_deref().map(previewed),
                };
                let passage =
                    self.network
                        .passage(route, &mut *sandbox, &profile, &given, kept, watch)?;
                if let (Some(simulation), Some(capture)) = (&simulation, &mut capture) {
                    // What was read from a pipe cannot be given again.
                    if io.stdin.is_none() || io.replayable.is_some() {
                        self.simulations
                            .rehearse(&project, exec, &call, io.replayable)?;
                    }
                    capture.reports =
                        self.effects
                            .reports(&mut *sandbox, exec, simulation, capture)?;
                }
                let used = given.recorded();
                if !used.is_empty() {
                    self.secrets.open()?.note_use(opened.ids(), exec, &used)?;
                }
                let recall = match &passage {
                    Some(passage) => self.network.recall(passage.way(), opened.space(), used)?,
                    None => None,
                };
                Ok((masks, passage, recall, capture))
            });
        let (masks, passage, recall, mut capture) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                let (entry, record) = opened.fail(error);
                let closed = path::end(self.store()?, entry, record, io.again)?;
                workspace_lease.forget(files.exec(), &project);
                let _ = project.forget_inputs(files.exec());
                let _ = files.discard();
                return Ok(Walked::Ended(Box::new(closed), sandbox.dismiss()));
            }
        };
        let lease = path::admit(opened, sandbox);
        stage::reached("admit");
        let work = project.work().filter(|_| lease.sees_workspace());
        let own = workspace_lease.watched(work, &files);
        let watched: Vec<&Dir> = own.into_iter().chain(&written).collect();
        let mut watch = capture
            .as_mut()
            .map(|it| |notice: Notice| it.observer.noticed(notice));
        let inputs = RunInputs {
            order: &order,
            watched: &watched,
            room: workspace_lease.room,
            given: &given,
            passage,
            masks,
            observer: watch.as_mut().map(|it| it as &mut dyn FnMut(Notice)),
        };
        let (seats, cancel, again) = (io.seats, io.cancel, io.again);
        let mut exited = self.network.watching(recall.as_ref(), || {
            stage::span("run").in_scope(|| path::run(lease, inputs, streams, io))
        });
        drop(recall);
        if let Some(capture) = &capture {
            capture.gathering.dropped(exited.unnoticed());
        }
        if let Some(error) = exited.failure_mut() {
            let host = shows_the_host.then_some(&settings.host);
            super::start_error::explain(error, &order, &toolchains, host, work);
        }
        stage::reached("run");
        let memory = workspace_lease.artifacts_in_memory();
        let captured =
            stage::span("collect").in_scope(|| path::collect(exited, &files, memory.as_ref()));
        drop(memory);
        stage::reached("collect");
        let gated = workspace_lease.gated.clone();
        let mut judging =
            capture.map(|capture| Judging::new(capture, &call, gated, settings, seats, cancel));
        let judged = stage::span("judge").in_scope(|| {
            path::judge(captured, |record| {
                workspace_lease.settle(self, record, judging.as_mut())
            })
        });
        stage::reached("judge");
        let store = self.store()?;
        let closed = stage::span("close").in_scope(|| path::close(store, judged, &files, again));
        stage::reached("close");
        let _ = project.forget_inputs(files.exec());
        closed.map(|(record, remains)| Walked::Ended(Box::new(record), remains))
    }
}
