"""Models go both ways between Tiki and Hugging Face transformers: same folder, same numbers."""
import json
import os
import subprocess

import numpy as np
import pytest
import torch
import transformers

import tiki_c

TIKI = os.environ["TIKI_BIN"]
TEXT = b"".join(b"Tiki trains model %d on line %d of its own text.\n" % (i % 7, i) for i in range(120))
FAMILIES = ["gpt2", "llama"]


def tiki(*words):
    done = subprocess.run([TIKI, *map(str, words)], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def some_tokens(batch, length):
    return np.random.default_rng(4).integers(0, 256, (batch, length))


def torch_logits(model, tokens):
    with torch.no_grad():
        return model(torch.tensor(tokens, dtype=torch.long)).logits.numpy()


def torch_loss(model, text, context):
    """Mean nats a byte in windows of the context, each byte but the first predicted once."""
    total, at = 0.0, 0
    while at < len(text) - 1:
        width = min(context, len(text) - 1 - at)
        window = torch.tensor(list(text[at:at + width + 1]))[None]
        with torch.no_grad():
            out = model(window[:, :-1]).logits[0].double()
        total += torch.nn.functional.cross_entropy(out, window[0, 1:], reduction="sum").item()
        at += width
    return total / (len(text) - 1)


def torch_greedy(model, prompt, count):
    tokens = torch.tensor(list(prompt))[None]
    for _ in range(count):
        with torch.no_grad():
            tokens = torch.cat([tokens, model(tokens).logits[:, -1:].argmax(-1)], 1)
    return bytes(tokens[0].tolist())


# ---- from Tiki ----


@pytest.fixture(scope="module", params=FAMILIES)
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "text").write_bytes(TEXT)
    heads = ["--kv-heads", 2] if request.param == "llama" else []
    tiki("train", "--data", folder / "text", "--out", folder / "run", "--model", request.param,
         "--layers", 2, "--heads", 4, "--dim", 64, "--context", 48, "--batch", 8, "--steps", 60,
         "--lr", "1e-2", "--warmup", 10, *heads)
    return folder / "run"


def load(folder):
    """The model in float32, and nothing of it made up by transformers."""
    model, report = transformers.AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, local_files_only=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    assert not report["mismatched_keys"]
    assert model.dtype == torch.float32
    return model.eval()


def test_transformers_reads_what_tiki_trained(trained):
    model = load(trained)
    tokens = some_tokens(3, 48)
    ours, theirs = tiki_c.logits(trained, tokens), torch_logits(model, tokens)
    assert np.abs(ours - theirs).max() <= 1e-4
    assert theirs.std() > 0.5


def test_the_loss_is_the_same(trained, tmp_path):
    (tmp_path / "text").write_bytes(TEXT[:1000])
    ours = float(tiki("eval", "--model", trained, "--data", tmp_path / "text").split()[0])
    assert ours == pytest.approx(torch_loss(load(trained), TEXT[:1000], 48), abs=2e-6)


def test_the_text_is_the_same(trained):
    prompt = b"Tiki trains"
    ours = tiki("generate", "--model", trained, "--prompt", prompt.decode(), "--tokens", 30,
                "--temperature", 0)
    assert ours == torch_greedy(load(trained), prompt, 30) + b"\n"


def test_the_config_speaks_to_both_generations(trained):
    config = json.loads((trained / "config.json").read_text())
    assert config["torch_dtype"] == "float32"
    assert config["bos_token_id"] is None and config["eos_token_id"] is None
    assert (config["model_type"] == "llama") == ("rope_theta" in config)
    loaded = transformers.AutoConfig.from_pretrained(trained)
    assert loaded.bos_token_id is None and loaded.eos_token_id is None
    if config["model_type"] == "llama":
        assert loaded.num_key_value_heads == 2


def test_transformers_saves_what_tiki_reads_back(trained, tmp_path):
    load(trained).save_pretrained(tmp_path)
    tokens = some_tokens(2, 48)
    assert np.array_equal(tiki_c.logits(trained, tokens), tiki_c.logits(tmp_path, tokens))


# ---- to Tiki ----

GPT2 = dict(vocab_size=256, n_layer=2, n_head=4, n_embd=48, n_positions=40, bos_token_id=None,
            eos_token_id=None)
LLAMA = dict(vocab_size=256, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             hidden_size=48, intermediate_size=80, max_position_embeddings=40, bos_token_id=None,
             eos_token_id=None)


def random_models():
    gpt2, llama = transformers.GPT2Config, transformers.LlamaConfig
    yield "gpt2", gpt2(**GPT2)
    yield "gpt2-untied-inner", gpt2(**GPT2, tie_word_embeddings=False, n_inner=100,
                                    layer_norm_epsilon=1e-3)
    yield "llama", llama(**LLAMA)
    yield "llama-tied", llama(**LLAMA, tie_word_embeddings=True, rms_norm_eps=1e-3)
    yield "llama-biases", llama(**LLAMA, attention_bias=True, mlp_bias=True)
    yield "llama-head-dim", llama(**LLAMA, head_dim=20)
    yield "llama-theta", llama(**LLAMA, rope_parameters={"rope_type": "default",
                                                         "rope_theta": 500.0})


CASES = dict(random_models())


@pytest.fixture(scope="module", params=list(CASES))
def saved(request, tmp_path_factory):
    """A random model of transformers and its folder; weights far from their start, biases too."""
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(CASES[request.param]).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    folder = tmp_path_factory.mktemp(request.param)
    model.save_pretrained(folder)
    return model, folder


def test_tiki_reads_what_transformers_saved(saved):
    model, folder = saved
    tokens = some_tokens(3, 40)
    ours, theirs = tiki_c.logits(folder, tokens), torch_logits(model, tokens)
    assert np.abs(ours - theirs).max() <= 1e-4
    assert theirs.std() > 0.1


def test_saved_loss(saved, tmp_path):
    model, folder = saved
    (tmp_path / "text").write_bytes(TEXT[:500])
    ours = float(tiki("eval", "--model", folder, "--data", tmp_path / "text").split()[0])
    assert ours == pytest.approx(torch_loss(model, TEXT[:500], 40), abs=3e-6)


def test_saved_text(saved):
    model, folder = saved
    ours = tiki("generate", "--model", folder, "--prompt", "Tiki", "--tokens", 30,
                "--temperature", 0)
    assert ours == torch_greedy(model, b"Tiki", 30) + b"\n"


def test_sharded_models_load(tmp_path):
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(CASES["llama"]).eval()
    model.save_pretrained(tmp_path, max_shard_size="60KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    tokens = some_tokens(2, 40)
    assert np.abs(tiki_c.logits(tmp_path, tokens) - torch_logits(model, tokens)).max() <= 1e-4


def test_half_precision_models_load(tmp_path):
    """Parameters in bfloat16 compute in bfloat16: near the float32 logits, not the same."""
    torch.manual_seed(6)
    model = transformers.AutoModelForCausalLM.from_config(CASES["llama"]).eval()
    expected = torch_logits(model, some_tokens(1, 40))
    model.to(torch.bfloat16).save_pretrained(tmp_path)
    assert np.abs(tiki_c.logits(tmp_path, some_tokens(1, 40)) - expected).max() <= 0.05


@pytest.mark.parametrize("change", [
    {"hidden_act": "gelu"},
    {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}},
])
def test_other_numbers_are_refused(tmp_path, change):
    torch.manual_seed(7)
    model = transformers.AutoModelForCausalLM.from_config(CASES["llama"]).eval()
    model.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | change
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = subprocess.run([TIKI, "generate", "--model", tmp_path, "--prompt", "a"],
                          capture_output=True)
    assert done.returncode == 1 and next(iter(change)) in done.stderr.decode()
