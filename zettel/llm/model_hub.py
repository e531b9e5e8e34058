"""Model files on the Hugging Face hub and in its local cache."""

from __future__ import annotations

from pathlib import Path

from zettel.errors import EmbedderUnavailable, MissingExtra

NOT_NEEDED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.ckpt"]
"""Copies of the weights for other frameworks, left on the hub."""


def cached_folder(name: str) -> Path | None:
    """Return the folder of a model in the local cache, or None, without network access. Raises ``MissingExtra``."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError
    except ImportError as error:
        raise MissingExtra(f"the model {name}", "torch") from error

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except (HFValidationError, OSError):
        return None
    return folder if any(folder.rglob("*.safetensors")) or any(folder.rglob("*.bin")) else None


def download(name: str) -> Path:
    """Return the folder of a model, downloaded if needed. Raises ``EmbedderUnavailable``, ``MissingExtra``."""
    try:
        from httpx import HTTPError
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError
    except ImportError as error:
        raise MissingExtra(f"the model {name}", "torch") from error

    try:
        folder = Path(snapshot_download(name, ignore_patterns=[*NOT_NEEDED, "*.bin"]))
        if not any(folder.rglob("*.safetensors")):
            folder = Path(snapshot_download(name, ignore_patterns=NOT_NEEDED))
    except (HFValidationError, HfHubHTTPError, HTTPError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise EmbedderUnavailable(f"{name} cannot be downloaded: {reason}") from error
    return folder
