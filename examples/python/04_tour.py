# %% [markdown]
# # A tour of Tiki
#
# Run it cell by cell in an editor that knows `# %%`, or as a script: every claim is an assertion.

# %%
import os
import tempfile

import tiki as tk
from tiki import nn, optimizers

# %% [markdown]
# ## Arrays are lazy
#
# An expression is built at once and computed when somebody looks. Shapes, dtypes and mistakes are known before.

# %%
x = tk.arange(6, dtype=tk.float32).reshape(2, 3)
y = (x * 2 + 1).sum(axis=1)
assert y.shape == (2,) and y.dtype == tk.float32
print(y)  # looking computes
assert y.tolist() == [9.0, 27.0]

try:
    x @ x
except ValueError as error:
    print(f"refused when it was written, not when it ran: {error}")
else:
    raise AssertionError("shapes that do not fit were taken")

# %% [markdown]
# ## Indexing is NumPy's
#
# Assignment makes a new value and puts it into the same variable; `.at` is the form that says so.

# %%
z = tk.zeros((3, 4))
z[1, ::2] = 5
assert z.at[1, 0].add(1)[1].tolist() == [6, 0, 5, 0]
assert z[z > 0].tolist() == [5, 5]

# %% [markdown]
# ## Random numbers come from keys
#
# The same key gives the same numbers, on every machine. Without one, a sequence of keys follows `seed`.

# %%
key = tk.random.key(42)
assert tk.array_equal(tk.random.normal((4,), key=key), tk.random.normal((4,), key=key)).item()
first, second = tk.random.split(key)
assert not tk.array_equal(tk.random.normal((4,), key=first), tk.random.normal((4,), key=second)).item()


# %% [markdown]
# ## Functions transform
#
# `grad`, `vmap` and `compile` take a function and give one, and they compose.

# %%
def energy(position: tk.array) -> tk.array:
    return tk.sum(position**4 - 2 * position**2)


force = tk.grad(energy)
assert force(tk.array([0.0, 1.0, 2.0])).tolist() == [0, 0, 24]

each = tk.vmap(tk.grad(energy))
assert each(tk.array([[0.0, 1.0], [2.0, 1.0]])).tolist() == [[0, 0], [24, 0]]

quick = tk.compile(force)
assert quick(tk.array([2.0])).item() == 24

# %% [markdown]
# ## Layers are trees of arrays
#
# A model is a dictionary of its parameters: it can be flattened, saved, frozen and updated.

# %%
tk.random.seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
points = tk.random.uniform(-1, 1, (256, 2))
target = tk.prod(points, axis=1, keepdims=True)

optimizer = optimizers.Adam(learning_rate=0.02)
loss_and_grad = nn.value_and_grad(model, lambda a, b: nn.losses.mse_loss(model(a), b))
losses = []
for _ in range(300):
    loss, gradients = loss_and_grad(points, target)
    optimizer.update(model, gradients)
    tk.eval(model.parameters(), optimizer.state)
    losses.append(loss.item())
print(f"loss {losses[0]:.3f} to {losses[-1]:.5f}")
assert losses[-1] < 0.02 * losses[0]

# %% [markdown]
# ## Files are others' too
#
# safetensors, npy and npz. NumPy sees an array's memory without a copy, and others through DLPack.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.safetensors")
    model.save_weights(path)
    again = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    again.load_weights(path)
assert tk.array_equal(again(points), model(points)).item()

view = memoryview(x)
assert view.format == "f" and view.shape == (2, 3) and view.readonly

# %% [markdown]
# ## What comes next
#
# `03_gpt.py` trains a language model, the same run as the command `tiki train`.
print("the tour is over")
