"""Agents: MCP as its own client sees it, and tool boxes as their own interfaces see them."""
