"""The record: saved, loaded, replayed to the identical canvas, refused when damaged."""

import json
import os

import numpy as np
import pytest
import torch

from conftest import SPECIALS
from unmask import (
    OPEN,
    Canvas,
    InputError,
    Record,
    Recorder,
    RecordError,
    Settings,
    ToyBackbone,
    decode_steps,
    in_blocks,
    linear_counts,
    top_by,
)
from unmask.record import EVENTS, STEPS
from unmask.settings import build_strategy

ORDERS = ["margin", "random", "threshold:0.4", "p2", "origin", "eb:1"]


def recorded(order="margin", *, backbone=None, detail="reveals", **settings):
    backbone = backbone or ToyBackbone()
    canvas = Canvas.of([[3, 4] + [OPEN] * 14, [5, OPEN, 6, OPEN, OPEN, 7], [8] + [OPEN] * 20], seeds=[1, 2, 3])
    settings = Settings(order=order, **settings)
    strategy = build_strategy(settings, vocab_size=backbone.vocab_size, end_ids=backbone.end_ids, dtype=torch.float32)
    counts = [strategy.counts(holes) for holes in canvas.holes]
    recorder = Recorder(canvas, backbone.mask_id, detail=detail, meta={"model": "toy", "order": order})
    steps = []
    for step in decode_steps(backbone, canvas, counts=counts, select=strategy.select, pick=strategy.pick):
        recorder.add(step)
        steps.append(step)
    return recorder.finish(), steps, canvas


def lines_of(canvas, window):
    return [row[:length].tolist() for row, length in zip(canvas.filled(window), canvas.lengths, strict=True)]


@pytest.mark.parametrize("order", ORDERS)
def test_replays_to_the_identical_canvas_at_every_step(order, tmp_path):
    record, steps, canvas = recorded(order, temperature=0.7)
    record.save(tmp_path / "decode.unmask")
    again = Record.load(tmp_path / "decode.unmask")
    for step in steps:
        assert again.canvas(step.step) == lines_of(canvas, step.window)
    assert again.canvas() == lines_of(canvas, steps[-1].window)
    assert again.canvas(0) == lines_of(canvas, canvas.masked(ToyBackbone().mask_id))
    assert again.meta == {"model": "toy", "order": order}


def test_numbers_are_those_of_a_full_softmax(transformer):
    record, steps, canvas = recorded("top1", backbone=transformer, eos="none")
    c = record.columns
    event = 0
    for step in steps:
        logits = step.view.predictions.states
        for row, slot in step.choice.reveal.nonzero().tolist():
            (at,) = np.flatnonzero((c["row"] == row) & (c["slot"] == slot))
            z = transformer.head(logits[row, slot][None])[0].double()
            z[list(transformer.banned)] = -torch.inf
            p = z.softmax(0)
            best = p.topk(2)
            assert c["token"][at] == best.indices[0]
            assert c["runner_up"][at] == best.indices[1]
            assert c["top1"][at] == pytest.approx(float(best.values[0]), abs=1e-5)
            assert c["margin"][at] == pytest.approx(float(best.values[0] - best.values[1]), abs=1e-5)
            assert c["end_mass"][at] == pytest.approx(float(p[[180, SPECIALS["<|eot_id|>"]]].sum()), abs=1e-5)
            assert c["position"][at] == canvas.slots[row, slot]
            event += 1
    assert event == len(c["row"]) == sum(canvas.holes)


def test_masked_and_mean_end_mass_describe_every_step():
    record, steps, _ = recorded()
    c = record.columns
    for row, step, masked, mass in zip(c["step_row"], c["step_step"], c["masked"], c["mean_end_mass"], strict=True):
        view = steps[step - 1].view
        assert masked == view.masked[row].sum()
        assert mass == pytest.approx(float(view.stats.end_mass[row][view.masked[row]].mean()), abs=1e-5)


def test_ties_at_the_cut_are_counted():
    canvas = Canvas.of([[OPEN] * 6])
    level = torch.tensor([[0.9, 0.5, 0.5, 0.5, 0.1, 0.0]])
    recorder = Recorder(canvas, ToyBackbone().mask_id)
    for step in decode_steps(ToyBackbone(), canvas, counts=linear_counts(6, 3), select=top_by(lambda view, stats: level)):
        recorder.add(step)
    # step 1 takes 0.9 and one of three 0.5: two more are tied; step 2 takes both; step 3 leaves none
    assert recorder.finish().columns["ties"].tolist() == [2, 0, 0]


def test_ties_are_those_of_the_rule_not_of_float32():
    canvas = Canvas.of([[OPEN] * 4])
    level = torch.tensor([[1 - 1e-12, 1 - 2e-12, 1 - 3e-12, 0.5]], dtype=torch.float64)
    recorder = Recorder(canvas, ToyBackbone().mask_id)
    for step in decode_steps(ToyBackbone(), canvas, counts=linear_counts(4, 4), select=top_by(lambda view, stats: level)):
        recorder.add(step)
    assert recorder.finish().columns["ties"].tolist() == [0, 0, 0, 0]


def test_ties_in_a_step_that_finishes_one_block_and_enters_the_next():
    canvas = Canvas.of([[OPEN] * 6])
    select = in_blocks(2, top_by(lambda view, stats: torch.zeros(view.masked.shape)))
    recorder = Recorder(canvas, ToyBackbone().mask_id)
    for step in decode_steps(ToyBackbone(), canvas, counts=(3, 3), select=select):
        recorder.add(step)
    assert recorder.finish().columns["ties"].tolist() == [1, 0]


def test_long_decodes_are_recorded_in_parts(monkeypatch):
    whole, _, _ = recorded("random")
    monkeypatch.setattr("unmask.record.FLUSH", 2)
    parts, _, _ = recorded("random")
    for name, column in whole.columns.items():
        assert np.array_equal(column, parts.columns[name], equal_nan=column.dtype.kind == "f"), name


def test_full_detail_maps_every_masked_slot():
    record, steps, _ = recorded(detail="full")
    flat = np.concatenate([
        (step.view.stats.chosen - step.view.stats.logsumexp).exp()[step.view.masked].numpy() for step in steps
    ])  # fmt: skip
    assert np.allclose(record.columns["map_top1"], flat, atol=1e-3)
    row = record.row(2)
    assert len(row.columns["map_top1"]) == row.columns["masked"].sum()


def test_a_row_is_a_record_of_its_own(tmp_path):
    record, _, _ = recorded("margin", detail="full")
    for index in range(3):
        row = record.row(index)
        row.save(tmp_path / "row.unmask")
        assert Record.load(tmp_path / "row.unmask").canvas() == [record.canvas()[index]]


def test_json_lines_hold_the_same(tmp_path):
    record, _, _ = recorded()
    record.write_jsonl(tmp_path / "decode.jsonl")
    header, *lines = [json.loads(line) for line in (tmp_path / "decode.jsonl").read_text().splitlines()]
    assert header["unmask_record"] == 1
    events = [(line["row"], line["step"], event["slot"], event["token"]) for line in lines for event in line["events"]]
    c = record.columns
    assert sorted(events) == sorted(
        zip(c["row"].tolist(), c["step"].tolist(), c["slot"].tolist(), c["token"].tolist(), strict=True)
    )
    assert len(lines) == len(c["step_row"])


def test_a_record_is_compact(tmp_path):
    record, _, canvas = recorded()
    record.save(tmp_path / "decode.unmask")
    per_event = sum(np.dtype(kind).itemsize for kind in EVENTS.values())
    per_step = sum(np.dtype(kind).itemsize for kind in STEPS.values())
    limit = per_event * sum(canvas.holes) + per_step * len(record.columns["step_row"]) + 4000
    assert (tmp_path / "decode.unmask").stat().st_size < limit


class TestRefused:
    @pytest.fixture
    def saved(self, tmp_path):
        recorded()[0].save(tmp_path / "decode.unmask")
        return tmp_path / "decode.unmask"

    def test_absent(self, tmp_path):
        with pytest.raises(RecordError, match="nothing.unmask does not exist"):
            Record.load(tmp_path / "nothing.unmask")

    @pytest.mark.parametrize("cut", [0, 7, 100, -1])
    def test_truncated(self, saved, cut):
        saved.write_bytes(saved.read_bytes()[:cut])
        with pytest.raises(RecordError, match="is not a record, or is damaged"):
            Record.load(saved)

    def test_one_bit_flipped(self, saved):
        content = bytearray(saved.read_bytes())
        content[-5] ^= 1
        saved.write_bytes(content)
        with pytest.raises(RecordError, match="checksum does not match its content"):
            Record.load(saved)

    def test_another_version(self, saved, monkeypatch):
        monkeypatch.setattr("unmask.record.VERSION", 2)
        with pytest.raises(RecordError, match="has record version 1, this unmask reads 2"):
            Record.load(saved)

    def test_another_safetensors_file(self, checkpoint):
        with pytest.raises(RecordError, match="has record version none"):
            Record.load(next(checkpoint.glob("*.safetensors")))

    def test_columns_that_do_not_fit(self, saved):
        record = Record.load(saved)
        for name, change in (("row", 9), ("position", 99)):
            columns = {**record.columns, name: record.columns[name] + np.uint32(change)}
            Record(columns, record.mask_id, record.meta).save(saved)
            with pytest.raises(RecordError, match=r"do not fit together|lies outside its row"):
                Record.load(saved)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    record, _, _ = recorded()
    file = tmp_path / "decode.unmask"
    record.save(file)
    before = file.read_bytes()

    def full_disk(*_, **__):
        raise OSError("No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", full_disk)
    with pytest.raises(OSError, match="No space left"):
        record.save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_links_are_kept_special_files_refused_and_modes_usual(tmp_path):
    record, _, _ = recorded()
    (tmp_path / "real").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    record.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert Record.load(tmp_path / "real").canvas() == record.canvas()
    old = os.umask(0o022)
    try:
        record.save(tmp_path / "new")
    finally:
        os.umask(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o644
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="it is a device or a pipe"):
        record.save(tmp_path / "pipe")


@pytest.mark.parametrize("change", [{"meta": "null"}, {"meta": "["}, {"mask_id": "x"}, {"mask_id": "-1"}])
def test_an_odd_header_with_a_right_checksum_is_refused(tmp_path, change):
    from safetensors.numpy import save_file

    from unmask.record import _checksum

    record, _, _ = recorded()
    header = {"unmask_record": "1", "mask_id": "95", "meta": "{}", **change}
    save_file(dict(record.columns), tmp_path / "odd", metadata={**header, "crc32": str(_checksum(record.columns, header))})
    with pytest.raises(RecordError, match="damaged header"):
        Record.load(tmp_path / "odd")
