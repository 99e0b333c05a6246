"""Addresses for operators."""

from django.urls import path

from memory.ops import views

entry_patterns = [path("metrics", views.metrics, name="metrics")]
