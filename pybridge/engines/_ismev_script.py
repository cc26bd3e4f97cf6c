"""ismev's calls as R source text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pybridge import _r_text as r
from pybridge.engines._tail_request import TailRequest
from pybridge.engines._tail_script import call_of, shim_source, vector


def _link(text: str, unit: str = "") -> str:
    if text in ("identity", "exp") or not unit:
        return text
    return f"local({{ f <- {text}; function(x) f(x) / unit }})"


def _arguments(inputs: Mapping[str, Any]) -> dict[str, str]:
    """As R source text, by name."""
    words = {name: r.value(value) for name, value in inputs["arguments"].items()}
    if inputs.get("covariates") is not None:
        words["ydat"] = "ydat"
    unit = "unit" if inputs["unit"] != 1.0 else ""
    for name in ("mulink", "siglink", "shlink"):
        if inputs.get(name, "identity") != "identity":
            words[name] = _link(inputs[name], "" if name == "shlink" else unit)
    return words


def _data(inputs: Mapping[str, Any]) -> str:
    text = vector("x", inputs["xdat"])
    limit = inputs["threshold"]
    text += vector("threshold", limit) if np.ndim(limit) else f"threshold <- {r.number(limit)}\n"
    if inputs.get("covariates") is not None:
        if inputs["back"] is not None:
            text += "# Centred and scaled, as ismev got them.\n"
        text += vector("ydat", inputs["covariates"])
    return text


def _call(function: str, words: Mapping[str, str]) -> str:
    inner = "".join(f", {r.name(name)} = {value}" for name, value in words.items())
    return f"{function}(x / unit, threshold / unit{inner}, show = FALSE)"


def _fit(inputs: Mapping[str, Any], function: str = "gpd.fit") -> str:
    words = _arguments(inputs)
    text = _data(inputs) + f"fit <- {_call(f'ismev::{function}', words)}\n"
    if inputs["restarts"]:
        again, first = dict(words), 1
        for name in ("mu", "sig", "sh"):
            if name == "mu" and function == "gpd.fit":
                continue
            last = first + len(np.atleast_1d(inputs["arguments"].get(f"{name}l", [])))
            again[f"{name}init"] = f"fit$mle[{first}:{last}]"
            first = last + 1
        text += (
            "# Nelder-Mead stops early: it goes on from there, with a new simplex.\n"
            f"for (again in 1:{inputs['restarts']}) {{\n"
            "  before <- fit$nllh\n"
            f"  fit <- {_call(f'ismev::{function}', again)}\n"
            "  if (before - fit$nllh < 1e-10) break\n}\n"
        )
    return text


def _user(inputs: Mapping[str, Any]) -> str:
    """The coefficients in the user's units."""
    text, mle, cov = "", "fit$mle", "fit$cov"
    if inputs["back"] is not None:
        text = (
            "# Back to the scores' units and the covariates as they were.\n"
            + vector("back", inputs["back"])
            + vector("moved", inputs["moved"])
        )
        mle, cov = "as.vector(back %*% fit$mle) + moved", "back %*% fit$cov %*% t(back)"
    return text + (
        f"result <- list(mle = {mle}, cov = {cov},\n" "  nllh = fit$nllh + fit$nexc * log(unit))\n"
    )


def _gpd_fit(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return _fit(inputs) + _user(inputs)


def _pp_fit(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return _fit(inputs, "pp.fit") + _user(inputs)


def _pen(*names: str) -> str:
    """The bridge's own functions that write down what ismev draws."""
    return (
        "# ismev draws this and gives nothing back: a pen that writes down instead.\n"
        + shim_source("ismev_tail.R", *names)
    )


def _curve(function: str, ends: str) -> Callable[[TailRequest, Mapping[str, Any]], str]:
    def write(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
        words = {name: r.value(value) for name, value in inputs["profile"].items()}
        for name in ("xlow", "xup"):
            words[name] += ends
        listed = "".join(f", {name} = {value}" for name, value in words.items())
        unit = " * unit" if ends else ""
        return (
            _fit(inputs)
            + _pen("ismev_tail_drawn")
            + f'seen <- ismev_tail_drawn("{function}", list(fit{listed}))\n'
            + "shift <- fit$nexc * log(unit)\n"
            + f"result <- list(x = seen[[1]][[2]]{unit}, profile = seen[[1]][[3]] - shift,\n"
            + "  top = seen[[2]]$h - shift, cut = seen[[3]]$h - shift)\n"
        )

    return write


def _gpd_diag(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    return (
        _fit(inputs)
        + _pen("ismev_tail_drawn", "ismev_tail_back", "ismev_tail_parts")
        + 'seen <- ismev_tail_drawn("gpd.diag", list(ismev_tail_back(fit, unit)))\n'
        + "result <- ismev_tail_parts(seen)\n"
    )


def _gpd_fitrange(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    first = ["data / unit", *(f"{r.number(inputs[end])} / unit" for end in ("umin", "umax"))]
    if inputs.get("each"):
        found = (
            "# gpd.fitrange stops as a whole where one threshold has no fit or no interval.\n"
            + shim_source("ismev_tail.R", "ismev_tail_each")
            + f"found <- ismev_tail_each(data / unit, c({', '.join(first[1:])}), "
            + f"{r.value(inputs['arguments'])})\n"
        )
    else:
        found = (
            "pdf(NULL)  # it draws, and gives what it draws\n"
            + f"found <- {call_of('ismev::gpd.fitrange', first, inputs['arguments'])}\n"
            + "invisible(dev.off())\n"
        )
    return (
        vector("data", inputs["data"])
        + found
        + "result <- found\nresult$thresholds <- found$thresholds * unit\n"
        + 'for (name in c("mle", "se", "ci.low", "ci.up"))\n'
        + "  result[[name]][, 1] <- found[[name]][, 1] * unit\n"
    )


def _mrl_plot(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    words = "".join(f", {name} = {r.value(v)}" for name, v in inputs["arguments"].items())
    return (
        vector("data", inputs["data"])
        + _pen("ismev_tail_drawn")
        + f'seen <- ismev_tail_drawn("mrl.plot", list(data{words}))\n'
        + "result <- list(u = seen[[1]][[2]], mean = seen[[1]][[3]],\n"
        + "  lower = seen[[2]][[3]], upper = seen[[3]][[3]])\n"
    )


def _evir_gpd(asked: TailRequest, inputs: Mapping[str, Any]) -> str:
    words = dict(inputs["arguments"])
    if "threshold" in words:
        words["threshold"] = words["threshold"] / inputs["unit"]
    return (
        vector("data", inputs["data"])
        + f"fit <- {call_of('evir::gpd', ['data / unit'], words)}\n"
        + "by <- c(1, unit)\n"
        + "result <- list(par.ests = fit$par.ests * by, par.ses = fit$par.ses * by,\n"
        + "  nllh = fit$nllh.final + fit$n.exceed * log(unit))\n"
    )


ISMEV: dict[str, Callable[[TailRequest, Mapping[str, Any]], str]] = {
    "ismev_tail_gpd_fit": _gpd_fit,
    "ismev_tail_pp_fit": _pp_fit,
    "ismev_tail_gpd_prof": _curve("gpd.prof", " / unit"),
    "ismev_tail_gpd_profxi": _curve("gpd.profxi", ""),
    "ismev_tail_gpd_diag": _gpd_diag,
    "ismev_tail_gpd_fitrange": _gpd_fitrange,
    "ismev_tail_mrl_plot": _mrl_plot,
    "evir_gpd": _evir_gpd,
}
