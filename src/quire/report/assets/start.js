startDiagram(JSON.parse(document.getElementById("data").textContent));
