import { render } from "preact";
import { App } from "./app";
import { listen } from "./keys";
import { takeTokenFromAddress } from "./session";
import "./style/base.css";
import "./style/parts.css";
import "./style/shell.css";
import "./style/canvas.css";
import { applyTheme } from "./theme";

applyTheme();
takeTokenFromAddress();
listen();
render(<App />, document.getElementById("app")!);
