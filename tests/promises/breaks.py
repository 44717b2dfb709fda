"""How each promise is broken: an attribute is replaced, and a test that is named for it has to fail."""

from __future__ import annotations

from typing import NamedTuple


class Break(NamedTuple):
    """``target`` is ``module:attribute``, ``broken`` an expression that takes its place.

    In it ``original`` is what was there, and the names of its module are known. ``test`` is a test of
    ``docs/promises.md``.
    """

    name: str
    target: str
    broken: str
    test: str


_KEPT = "tests/runs/test_interrupted.py"
_WORKERS = "tests/containment/test_workers.py"
_CREW = "tests/worker/test_crew.py"
_FOLDERS = "tests/containment/test_folders.py"
_GUARDS = "tests/containment/test_guards.py"
_COMMANDS = "tests/worlds/test_hostile_commands.py"
_HARNESSES = "tests/harnesses/test_hostile_harnesses.py"

BREAKS = (
    # Results
    Break(
        "every truth is complete",
        "evalkit.scoring.arena:Arena.truth",
        "lambda *a, **k: 'complete'",
        "tests/scoring/test_hand_table.py::test_cell",
    ),
    Break(
        "rows of a second worker are lost",
        "evalkit.runs.local_pool:Local.run",
        "lambda self, *a: list(original(self, *a))[1:] if self.workers > 1 else original(self, *a)",
        "tests/runs/test_run.py::test_one_and_two_workers_give_the_same_bytes",
    ),
    Break(
        "what evalkit fails at is an ending as any other",
        "evalkit.runs.store:void_row",
        "lambda *a: tuple('error' if v == 'void' else v for v in original(*a))",
        "tests/runs/test_run.py::test_what_evalkit_itself_fails_at_is_void_and_out_of_every_base",
    ),
    Break(
        "a truth is any word",
        "evalkit.scoring.arena:Arena.truth",
        "lambda *a, **k: 'perhaps'",
        "tests/scoring/test_any_scenario.py::test_every_preset_ends_with_a_truth_and_the_flags_of_the_definitions",
    ),
    Break(
        "rows of a cluster are lost",
        "evalkit.runs.cluster:Cluster.run",
        "lambda self, *a: list(original(self, *a))[1:]",
        "tests/runs/test_cluster.py::test_a_killed_worker_costs_nothing_and_the_outcome_is_that_of_a_local_run",
    ),
    Break(
        "over the wire an episode is another",
        "evalkit.scoring.episode:run_episode",
        "lambda *a, **k: msgspec.structs.replace(original(*a, **k), turns=0) if k else original(*a, **k)",
        "tests/wire/test_one_truth.py::test_a_sample_of_the_library",
    ),
    Break(
        "a proof overlooks what it found",
        "evalkit.search.proofs.explore:Sweep._found",
        "lambda self, *a: None",
        "tests/search/test_brute_force.py::test_agrees_with_every_script",
    ),
    Break(
        "an empty base is a rate of 0",
        "evalkit.stats.summary:_rate",
        "lambda *a, **k: {**(row := original(*a, **k)), 'rate': row['rate'] or 0.0}",
        "tests/stats/test_summary.py::TestRows::test_an_empty_base_has_no_rate",
    ),
    # Staying alive
    Break(
        "a resume runs finished cells again",
        "evalkit.runs.store:Store.finished",
        "lambda self: []",
        f"{_KEPT}::test_a_resume_runs_no_finished_cell_again",
    ),
    Break(
        "nothing is synchronised",
        "evalkit.runs.store:_connect",
        "lambda file: (base := original(file), base.execute('pragma synchronous = off'))[0]",
        f"{_KEPT}::test_what_is_kept_is_on_the_disk",
    ),
    Break(
        "nothing of the worker's is synchronised",
        "evalkit.worker.store.sqlite:SqliteDatabase.__init__",
        "lambda self, *a, **k: original(self, *a, **{**k, 'durability': 'off'})",
        "tests/worker/test_store.py::test_what_a_worker_kept_is_on_the_disk",
    ),
    Break(
        "a damaged file is gone on with",
        "evalkit.runs.store:damage_in",
        "lambda base: ''",
        f"{_KEPT}::test_damage_that_no_reading_meets_is_found_before_a_run_goes_on",
    ),
    Break(
        "what was lost with a worker is not run again",
        "evalkit.runs.local_pool:Lost",
        "type('Lost', (), {})",
        "tests/runs/test_run.py::TestTheDeathOfWorkers::test_a_chunk_lost_with_its_worker_is_run_again",
    ),
    Break(
        "half a message is a message",
        "evalkit.containment.workers:_Worker.take",
        "lambda self: (original(self), self.dead)[0] or (pickle.dumps((True, None)) if self.dead else None)",
        f"{_WORKERS}::test_a_death_within_the_message_costs_that_job_alone",
    ),
    Break(
        "a death is heard of by its socket alone",
        "evalkit.containment.workers:_Worker.watched",
        "lambda self: (self._socket.fileno(), self._socket.fileno())",
        f"{_WORKERS}::test_a_dead_worker_whose_child_holds_its_socket_is_dead",
    ),
    Break(
        "workers outlive their run",
        "evalkit.containment.workers:end_with",
        "lambda parent: None",
        f"{_KEPT}::test_workers_do_not_outlive_a_run_that_is_killed_alone",
    ),
    Break(
        "a crew outlives its parent",
        "evalkit.worker.crew:_member",
        "lambda duty, number, parent: sys.exit(_work_here(duty, number))",
        f"{_CREW}::test_a_crew_whose_parent_is_killed[sqlite]",
    ),
    Break(
        "a clock that jumps costs leases",
        "evalkit.worker.worker:Worker._run_out",
        "lambda self, now: frozenset((e.task, e.number) for e in self.store.leases() if e.until <= now)",
        "tests/worker/test_trouble.py::test_a_clock_that_jumps_forward_costs_no_lease_of_the_living",
    ),
    Break(
        "a clock that jumps holds requests up",
        "evalkit.models.pacing:Pace.__init__",
        "lambda self, *a, **k: original(self, *a, **{**k, 'clock': k.get('date', time.time)})",
        "tests/models/test_pacing.py::test_a_date_that_jumps_holds_nothing_up_and_lets_nothing_through",
    ),
    Break(
        "SIGTERM ends nothing that was started",
        "evalkit.cli.interrupts:_SIGNALS",
        "(signal.SIGINT,)",
        "tests/cli/test_interrupts.py::test_what_sleeps_does_not_hold_it_up",
    ),
    Break(
        "what nobody can say is done again",
        "evalkit.worker.attempt:Attempt._act",
        "lambda self, call, n, p, effect: original(self, call, n, p, effect and "
        "msgspec.structs.replace(effect, care='free'))",
        "tests/worker/test_attempt.py::test_what_nobody_can_say_is_escalated_and_never_repeated",
    ),
    Break(
        "a full disk is a traceback",
        "evalkit.cli:_os_problem",
        "lambda error: error",
        "tests/cli/test_surroundings.py::test_a_disk_that_is_full_at_whatever_stage_is_a_line",
    ),
    Break(
        "nothing has ever changed",
        "evalkit.runs.plan:changes_since",
        "lambda recipe: []",
        "tests/runs/test_run.py::test_a_changed_version_strategy_or_scenario_is_noticed",
    ),
    # Speed and scale
    Break(
        "a turn walks what came before it",
        "evalkit.stage.stage:Stage.ask",
        "lambda self, *a, **k: ([abs(n) for n in range(self.turns)], original(self, *a, **k))[1]",
        "tests/runs/test_scale.py::test_a_turn_costs_the_same_in_a_long_episode[silence]",
    ),
    Break(
        "chunks never grow",
        "evalkit.runs.chunks:Work.took",
        "lambda self, chunk, seconds: None",
        "tests/runs/test_chunks.py::test_chunks_come_to_their_time",
    ),
    Break(
        "the remaining time is twice as long",
        "evalkit.cli.progress:Remaining.seconds",
        "lambda self, *a: (left := original(self, *a)) and 2 * left",
        "tests/cli/test_progress.py::test_at_a_steady_speed_it_is_right_whatever_was_there_before",
    ),
    Break(
        "help loads pandas",
        "evalkit.cli:COMMANDS",
        "(__import__('pandas'), original)[1]",
        "tests/cli/test_cli.py::test_nothing_heavy_is_loaded_for_nothing",
    ),
    # Hostile and broken input
    Break(
        "a body in pieces has no limit",
        "evalkit.wire.connection:Connection._fits",
        "lambda self, size: True",
        "tests/wire/test_server.py::test_an_oversized_body_is_refused",
    ),
    Break(
        "the server keeps what it was sent",
        "evalkit.wire.server:_route",
        "lambda *a, kept=[]: (kept.append(a[1]), original(*a))[1]",
        "tests/wire/test_server.py::test_what_it_was_sent_is_not_kept",
    ),
    Break(
        "what stands for an ending file is opened",
        "evalkit.harnesses.command:read_plain",
        "lambda file, most: open(file, 'rb').read(most) if file.is_file() else None",
        f"{_HARNESSES}::test_an_ending_that_is_no_file_is_an_error",
    ),
    Break(
        "control codes reach the terminal",
        "evalkit.core.escaping:for_terminal",
        "lambda text: text",
        "tests/cli/test_planted.py::test_no_command_prints_it",
    ),
    Break(
        "a cell is a formula",
        "evalkit.core.escaping:for_csv",
        "lambda value: value",
        "tests/cli/test_planted.py::test_no_file_of_a_report_holds_it",
    ),
    Break(
        "a name is a tag",
        "evalkit.core.escaping:for_markdown",
        "lambda text: text",
        "tests/cli/test_planted.py::test_no_file_of_a_report_holds_it",
    ),
    Break(
        "what the system refuses is a traceback",
        "evalkit.cli:_os_problem",
        "lambda error: error",
        "tests/cli/test_surroundings.py::test_a_name_of_three_hundred_characters_is_a_line",
    ),
    Break(
        "a reader starts a process",
        "evalkit.harnesses.command:parse_ending",
        "lambda raw: (__import__('subprocess').run(['true']), original(raw))[1]",
        "tests/fuzz/test_fuzz.py::test_the_corpus[ending]",
    ),
    Break(
        "what is no number is a traceback",
        "evalkit.scenarios.yaml_source:_Reader._number",
        "lambda self, node, path, tag: float(node.value)",
        "tests/scenarios/test_hostile.py::test_a_spoilt_document_is_refused_in_one_line_or_runs",
    ),
    Break(
        "aliases are followed further",
        "evalkit.scenarios.yaml_source:MAX_NODES",
        "10 * original",
        "tests/strategies/test_hostile.py::test_a_bomb_of_aliases_is_refused_quickly",
    ),
    Break(
        "a cassette leaves its folder",
        "evalkit.models.cassettes:cassette_file",
        "lambda folder, scenario, seed: folder / f'{scenario}-{seed}.yaml'",
        "tests/models/test_cassettes.py::test_a_file_stays_in_its_folder",
    ),
    Break(
        "archives unpack to anything",
        "evalkit.transcripts.formats.inspect_logs:MAX_RATIO",
        "10**9",
        "tests/transcripts/test_robust.py::test_zip_bombs_are_refused_before_they_are_unpacked",
    ),
    # Isolation
    Break(
        "nobody measures what a harness writes",
        "evalkit.harnesses.processes:Guarded",
        "lambda *a, **k: original(*a, **{**k, 'watched': ()})",
        "tests/harnesses/test_hostile_harnesses.py::test_what_takes_more_than_its_share_is_an_error",
    ),
    Break(
        "episodes share one address",
        "evalkit.wire.server:Server.url",
        "lambda self, token: original(self, next(iter(self._entries)))",
        "tests/wire/test_server.py::test_episodes_side_by_side_do_not_mix",
    ),
    Break(
        "a command has time without end",
        "evalkit.containment.guarded:Guarded.wait",
        "lambda self, seconds: original(self, seconds + 5)",
        "tests/worlds/test_isolation.py::TestLimits::test_time",
    ),
    Break(
        "memory of all together has no limit",
        "evalkit.worlds.isolation:Limits",
        "lambda **limits: original(**{**limits, 'memory_mb': 0})",
        f"{_COMMANDS}::test_memory_of_all_processes_together_is_bounded",
    ),
    Break(
        "what is written in all has no limit",
        "evalkit.worlds.isolation:Limits",
        "lambda **limits: original(**{**limits, 'written_mb': 0})",
        f"{_COMMANDS}::test_what_is_written_in_all_is_bounded",
    ),
    Break(
        "a command has a network",
        "evalkit.worlds.isolation:Guarded",
        "lambda *a, **k: original(*a, **{**k, 'network': True})",
        f"{_COMMANDS}::test_there_is_no_network",
    ),
    Break(
        "a command has all files",
        "evalkit.worlds.isolation:Guarded",
        "lambda *a, **k: original(*a, **{**k, 'roots': None})",
        f"{_COMMANDS}::test_it_has_the_systems_programs_and_its_own_files_and_no_others",
    ),
    Break(
        "a command gets one variable more",
        "evalkit.worlds.isolation:clean_environment",
        "lambda home: {**original(home), 'ONE_MORE': 'x'}",
        "tests/worlds/test_isolation.py::TestRun::test_nothing_of_the_users_environment_reaches_it",
    ),
    Break(
        "a harness gets one variable more",
        "evalkit.harnesses.process_environment:Surroundings.env",
        "lambda self: {**original(self), 'ONE_MORE': 'x'}",
        "tests/harnesses/test_bad_harnesses.py::test_it_finds_nothing_in_its_environment_but_what_it_is_told",
    ),
    Break(
        "set-up gets one variable more",
        "evalkit.harnesses.pinned_environment:set_up_variables",
        "lambda home: {**original(home), 'ONE_MORE': 'x'}",
        "tests/harnesses/test_pinned_environment.py::test_set_up_sees_nothing_of_the_users_environment",
    ),
    Break(
        "the environment is there for everyone",
        "evalkit.containment.environment:hide_environment",
        "lambda: False",
        "tests/containment/test_environment.py::test_it_is_not_to_be_read_and_still_there",
    ),
    Break(
        "what leaves its group and environment outlives it",
        "evalkit.containment.guarded:_GUARD",
        "original.replace('sys.exit', 'guard._end_all = lambda *a: None; sys.exit')",
        f"{_HARNESSES}::test_nothing_outlives_it[subreaper]",
    ),
    Break(
        "a guard can be killed",
        "evalkit.containment.guarded:_GUARD",
        "original.replace('sys.exit', 'guard.syscall_filter.refuse_signals = lambda *a: None; sys.exit')",
        f"{_GUARDS}::test_what_stops_both_of_them_first_is_ended_all_the_same",
    ),
    Break(
        "no guard takes the place of another",
        "evalkit.containment.guarded:_GUARD",
        "original.replace('sys.exit', 'guard._be_found_by_orphans = lambda: None; sys.exit')",
        f"{_GUARDS}::test_one_guard_takes_the_place_of_the_other",
    ),
    Break(
        "folders stay",
        "evalkit.containment.folders:Held.close",
        "lambda self: None",
        f"{_FOLDERS}::test_it_is_gone_afterwards",
    ),
    Break(
        "what a killed process left stays",
        "evalkit.containment.folders:sweep",
        "lambda place: 0",
        f"{_FOLDERS}::test_what_a_killed_process_left_is_swept_and_nothing_else",
    ),
    Break(
        "a full disk is the harness's own failure",
        "evalkit.containment.folders:need_room",
        "lambda folder: None",
        f"{_COMMANDS}::test_a_full_disk_is_evalkits_own_failure",
    ),
    Break(
        "the server listens to everyone",
        "evalkit.wire.server:HOST",
        "'0.0.0.0'",
        "tests/wire/test_server.py::test_it_listens_on_loopback_only",
    ),
    Break(
        "a field is left uncleaned",
        "evalkit.secrets.rules:is_secret_field",
        "lambda name: False",
        "tests/secrets/test_bodies.py::test_names_and_values_of_a_list_of_headers_go",
    ),
    Break(
        "a text is left uncleaned",
        "evalkit.secrets.cleaning:clean_text",
        "lambda text, *a, **k: text",
        "tests/models/test_cassettes.py::test_no_secret_reaches_the_disk",
    ),
)
