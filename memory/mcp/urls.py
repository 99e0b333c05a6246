"""The address of MCP."""

from django.urls import path

from memory.mcp.endpoint import endpoint

mcp_patterns = [path("mcp", endpoint, name="mcp")]
