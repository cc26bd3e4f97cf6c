"""evd's calls as R source text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pybridge import _r_text as r
from pybridge.engines._tail_request import TailRequest
from pybridge.engines._tail_script import call_of, shim_source, vector


def _fit(inputs: Mapping[str, Any]) -> str:
    call = call_of("evd::fpot", ["x / unit", "threshold / unit"], inputs["arguments"])
    return (
        vector("x", inputs["x"])
        + f"threshold <- {r.number(inputs['threshold'])}\n"
        + f"fit <- {call}\n"
    )


_BY = 'by <- function(names) ifelse(names == "shape", 1, unit)\n'


def _fpot(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return (
        _fit(inputs)
        + _BY
        + "result <- list(param = fit$param * by(names(fit$param)),\n"
        + "  std.err = if (!is.null(fit$std.err)) fit$std.err * by(names(fit$std.err)),\n"
        + "  nllh = fit$deviance / 2 + fit$nhigh * log(unit))\n"
    )


def _model(inputs: Mapping[str, Any]) -> str:
    if inputs["guarded"] and inputs["arguments"].get("model") == "pp":
        return (
            "# evd's profile forgets to pass the model on; among the fixed parameters it does.\n"
            'fit$fixed <- c(as.list(fit$fixed), model = "pp")\n'
        )
    return ""


def _profile(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return (
        _fit(inputs)
        + _model(inputs)
        + f"found <- {call_of('profile', ['fit'], inputs['profile'])}\n"
        + f"ends <- confint(found, level = {r.number(inputs['level'])})\n"
        + _BY
        + "result <- list(ends = ends * by(rownames(ends)))\n"
    )


def _confint(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return (
        _fit(inputs)
        + f"ends <- confint(fit, level = {r.number(inputs['level'])})\n"
        + _BY
        + "result <- list(ends = ends * by(rownames(ends)))\n"
    )


def _drawn(function: str, first: list[str], arguments: Mapping[str, Any]) -> str:
    return (
        "pdf(NULL)  # it draws, and gives what it draws\n"
        + f"found <- {call_of(function, first, arguments)}\n"
        + "invisible(dev.off())\n"
    )


def _data(inputs: Mapping[str, Any]) -> str:
    text = vector("data", inputs["data"])
    return text + (vector("tlim", inputs["tlim"]) if inputs.get("tlim") is not None else "")


def _tcplot(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    found = _drawn("evd::tcplot", ["data / unit", "tlim / unit"], inputs["arguments"])
    if inputs.get("each"):
        found = (
            "# tcplot stops as a whole where one threshold has no fit or no interval.\n"
            + shim_source("evd_tail.R", "evd_tail_each", "evd_tail_thresholds")
            + f"words <- {r.value(inputs['arguments'])}\n"
            + "u <- evd_tail_thresholds(list(arguments = words, tlim = tlim, data = data)) / unit\n"
            + "found <- evd_tail_each(data / unit, u, words)\n"
        )
    return (
        _data(inputs)
        + found
        + "result <- found\n"
        + 'for (name in setdiff(names(found), "shapes")) result[[name]] <- found[[name]] * unit\n'
    )


def _mrlplot(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    first = ["data / unit"] + (["tlim / unit"] if inputs.get("tlim") is not None else [])
    return _data(inputs) + _drawn("evd::mrlplot", first, inputs["arguments"]) + "result <- found\n"


def _exiplot(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    drawn = _drawn("evd::exiplot", ["data", "tlim"], inputs["arguments"])
    return _data(inputs) + drawn + "result <- found\n"


def _clusters(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    call = call_of("evd::clusters", ["data", "u"], inputs["arguments"])
    return (
        _data(inputs)
        + "names(data) <- seq_along(data)\n"
        + vector("u", inputs["u"])
        + f"result <- {call}\n"
    )


def _exi(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    call = call_of("evd::exi", ["data", "u"], inputs["arguments"])
    return _data(inputs) + vector("u", inputs["u"]) + f"result <- list(extremal_index = {call})\n"


def _distribution(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    call = call_of(f"evd::{inputs['which']}", ["x"], inputs["arguments"])
    return vector("x", inputs["x"]) + f"result <- list(value = {call})\n"


EVD: dict[str, Callable[[TailRequest, Mapping[str, Any]], str]] = {
    "evd_tail_fpot": _fpot,
    "evd_tail_profile": _profile,
    "evd_tail_confint": _confint,
    "evd_tail_tcplot": _tcplot,
    "evd_tail_mrlplot": _mrlplot,
    "evd_tail_exiplot": _exiplot,
    "evd_tail_clusters": _clusters,
    "evd_tail_exi": _exi,
    "evd_tail_distribution": _distribution,
}
